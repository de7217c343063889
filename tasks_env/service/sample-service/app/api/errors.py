"""Errors as this API answers them.

    {"error": {"code": "ORDER_NOT_FOUND", "message": "there is no order o-17", "fields": []}}

`code` is for programs, `message` for people, `fields` names what of the request the error is about.
"""

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from app.api.schema import ApiModel


class ErrorBody(ApiModel):
    """What is wrong."""

    code: str
    message: str
    fields: list[str]


class ErrorEnvelope(ApiModel):
    """The body of every error."""

    error: ErrorBody


class ApiError(Exception):
    """A request that cannot be carried out. Raised by services, answered in the envelope."""

    def __init__(self, status: int, code: str, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.body = ErrorBody(code=code, message=message, fields=list(fields))


class NotFoundError(ApiError):
    """What was asked for is not there."""

    def __init__(self, code: str, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(404, code, message, fields)


class ConflictError(ApiError):
    """The request contradicts what is there."""

    def __init__(self, code: str, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(409, code, message, fields)


def install_error_handler(application: FastAPI) -> None:
    """Let `application` answer every `ApiError` in the envelope."""

    async def answer(_request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ApiError)
        envelope = ErrorEnvelope(error=error.body)
        return JSONResponse(envelope.model_dump(by_alias=True), status_code=error.status)

    application.add_exception_handler(ApiError, answer)
