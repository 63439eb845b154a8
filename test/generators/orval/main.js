import { collectFees, lookUpWallet } from "./api.ts";

// The generated client sends to paths, as a page does.
const { fetch } = globalThis;
globalThis.fetch = (path, options) => fetch(process.env.BASE_URL + path, options);

const collect = () => collectFees({ socialId: "98" });
const nothing = await collect();
const missing = await lookUpWallet({ handle: "nobodyatall" });
const refused = await collect();
console.log(
  JSON.stringify({
    nothing: { code: nothing.data.error, collected: nothing.data.collected },
    missing: { code: missing.data.error },
    refused: {
      code: refused.data.error,
      status: refused.status,
      seconds: refused.headers.get("retry-after"),
    },
  }),
);
