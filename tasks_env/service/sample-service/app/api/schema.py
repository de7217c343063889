"""Requests and answers: camelCase in JSON, snake_case in Python."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class ApiModel(BaseModel):
    """Base of everything that is sent or answered."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)
