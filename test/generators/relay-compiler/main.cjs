const {
  commitMutation,
  Environment,
  fetchQuery,
  Network,
  RecordSource,
  Store,
} = require("relay-runtime");
const Collect = require("./generated/WalletHistoryCollectMutation.graphql");
const Page = require("./generated/WalletHistoryPaginationQuery.graphql");
const Wallets = require("./generated/WalletHistoryQuery.graphql");

let code;
const network = Network.create(async ({ text }, variables) => {
  const response = await fetch(`${process.env.BASE_URL}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query: text, variables }),
  });
  const body = await response.json();
  code = body.errors?.[0].extensions.code;
  if (response.ok) return body;
  const seconds = response.headers.get("retry-after");
  throw Object.assign(new Error(code), { refused: { code, status: response.status, seconds } });
});
const environment = new Environment({ network, store: new Store(new RecordSource()) });
const collect = (socialId) =>
  new Promise((onCompleted, onError) =>
    commitMutation(environment, {
      mutation: Collect,
      variables: { socialId },
      onCompleted,
      onError,
    }),
  );
const query = (...args) => fetchQuery(environment, ...args).toPromise();

async function main() {
  const { node } = await query(Page, { id: process.env.SOCIAL_ID, count: 1 });
  const nothing = (await collect("98")).collect;
  const handles = ["creator", "nobodyatall"];
  const { wallets } = await query(Wallets, { handles });
  const partial = { code, handles: wallets.map((wallet) => wallet?.handle ?? null) };
  const { refused } = await collect("98").catch((error) => error);
  console.log(
    JSON.stringify({
      page: node.__fragments ? "a wallet" : "nothing",
      nothing: { code: nothing.error, collected: nothing.collected },
      partial,
      refused,
    }),
  );
}
void main();
