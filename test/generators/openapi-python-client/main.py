import json
import os

from tributary_client import Client
from tributary_client.api.default import collect_fees, look_up_wallet
from tributary_client.models import CollectError, CollectFeesBody, NothingToCollect, Wallet

client = Client(base_url=os.environ["BASE_URL"])


def collect():
    return collect_fees.sync_detailed(client=client, body=CollectFeesBody(social_id="98"))


nothing = collect().parsed
assert isinstance(nothing, NothingToCollect)
missing = look_up_wallet.sync(client=client, handle="nobodyatall")
assert not isinstance(missing, Wallet)
refused = collect()
assert isinstance(refused.parsed, CollectError)
print(
    json.dumps(
        {
            "nothing": {"code": nothing.error, "collected": nothing.collected},
            "missing": {"code": missing.error},
            "refused": {
                "code": refused.parsed.error,
                "status": refused.status_code,
                "seconds": refused.headers["retry-after"],
            },
        }
    )
)
