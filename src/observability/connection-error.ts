import { codeOf } from "./thrown.ts";

const UNTRUSTED =
  "its certificate's authority is not trusted: name that in NODE_EXTRA_CA_CERTS, or start Node with --use-system-ca";
const NO_TLS = "the port does not use TLS: correct the port, or use PLAIN";
const BREAKS = "the connection breaks: check the port; if it uses TLS, use SECURE";
const NO_ROUTE = "this machine cannot reach it: check its network and firewalls";
const CLOCK = "check this machine's clock, or renew the host's certificate";

/** What to do about an error of a connection, by the error's code in Node, OpenSSL or undici. */
const REMEDIES: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID:
    "its certificate is for another name: use a name that the certificate has",
  CERT_HAS_EXPIRED: `its certificate has expired: ${CLOCK}`,
  CERT_NOT_YET_VALID: `its certificate is not valid yet: ${CLOCK}`,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  ENOTFOUND: "there is no host of this name: correct the name",
  EAI_AGAIN: "its name cannot be resolved now: check this machine's DNS",
  ECONNREFUSED: "nothing listens at this port: correct the port, or start the server",
  ECONNRESET: BREAKS,
  UND_ERR_SOCKET: BREAKS,
  HPE_INVALID_CONSTANT: BREAKS,
  UND_ERR_ABORTED: "the proxy refuses the connection: check HTTPS_PROXY and HTTP_PROXY",
  UND_ERR_PRX_CONN: "the proxy ends the connection: check HTTPS_PROXY and HTTP_PROXY",
  EHOSTUNREACH: NO_ROUTE,
  ENETUNREACH: NO_ROUTE,
  ETIMEDOUT: NO_ROUTE,
  UND_ERR_CONNECT_TIMEOUT: NO_ROUTE,
};

/** Returns the code of an error, or of its nearest cause that has one: why a connection failed. */
export function connectionCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = codeOf(error);
  return typeof code === "string" ? code : connectionCodeOf(error.cause);
}

/** Returns what to do about the error of a connection whose code `text` contains, if known. */
export function remedyOf(text: string, { protocol }: Pick<URL, "protocol">): string | undefined {
  const code = text.match(/[A-Z_]{4,}/g)?.find((word) => Object.hasOwn(REMEDIES, word));
  const plain = protocol.replace(/s?:$/, "");
  return code && REMEDIES[code]!.replace("PLAIN", `${plain}://`).replace("SECURE", `${plain}s://`);
}
