import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";

const read = (name: string) =>
  readFileSync(new URL(`certificates/${name}.pem`, import.meta.url), "utf8");
const certificate = (name: string) => ({ key: read("key"), cert: read(name) });

/** Self-signed certificates for 127.0.0.1 and localhost, with their key. */
export const TRUSTED = certificate("trusted");
export const EXPIRED = certificate("expired");
export const UNTRUSTED = certificate("untrusted");

// This process trusts them as it trusts those of public authorities.
setDefaultCACertificates([...getCACertificates("default"), TRUSTED.cert, EXPIRED.cert]);
