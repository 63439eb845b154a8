import { startJsonServer } from "./json-server.ts";

/** The network's API with the given accounts, implemented from its documentation alone. */
export function startBareNetwork(
  accounts: readonly { id: string; username: string }[],
  token: string,
) {
  return startJsonServer(({ url, authorization }) => {
    if (authorization !== `Bearer ${token}`)
      return { status: 401, body: { title: "Unauthorized", status: 401 } };
    const byName = url.pathname === "/2/users/by";
    const keys = (url.searchParams.get(byName ? "usernames" : "ids") ?? "").split(",");
    const keyOf = (account: { id: string; username: string }) =>
      byName ? account.username.toLowerCase() : account.id;
    const data = accounts
      .filter((account) => keys.includes(keyOf(account)))
      .map((a) => ({ ...a, name: a.username }));
    const missing = keys.filter((key) => !accounts.some((account) => keyOf(account) === key));
    const errors = missing.map((value) => ({
      value,
      detail: `Could not find user with usernames: [${value}].`,
      title: "Not Found Error",
      resource_type: "user",
      parameter: byName ? "usernames" : "ids",
      resource_id: value,
      type: "https://api.example/2/problems/resource-not-found",
    }));
    return {
      body: { ...(data.length > 0 ? { data } : {}), ...(errors.length > 0 ? { errors } : {}) },
    };
  });
}
