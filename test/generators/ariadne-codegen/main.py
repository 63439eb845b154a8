import json
import os

from tributary import (
    Client,
    ErrorCode,
    GraphQLClientGraphQLMultiError,
    GraphQLClientHttpError,
)

client = Client(url=os.environ["BASE_URL"] + "/graphql")
nothing = client.collect(social_id="98").collect
assert nothing.error is ErrorCode.NOTHING_TO_COLLECT


def find():
    return client.wallets(handles=["creator", "nobodyatall"])


try:
    find()
    raise AssertionError("no error")
except GraphQLClientGraphQLMultiError as error:
    wallets = error.data["wallets"]
    partial = {
        "code": error.errors[0].extensions["code"],
        "handles": [wallet and wallet["handle"] for wallet in wallets],
    }
try:
    find()
    raise AssertionError("no error")
except GraphQLClientHttpError as error:
    response = error.response
    refused = {
        "code": response.json()["errors"][0]["extensions"]["code"],
        "status": response.status_code,
        "seconds": response.headers["retry-after"],
    }
print(
    json.dumps(
        {
            "nothing": {"code": nothing.error.value, "collected": nothing.collected},
            "partial": partial,
            "refused": refused,
        }
    )
)
