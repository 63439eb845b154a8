import { generateKeyPairSync, sign, X509Certificate } from "node:crypto";
import { getCACertificates, setDefaultCACertificates } from "node:tls";

/** An ASN.1 value in DER. Contents of 256 bytes or more need the long form of the length. */
function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const { length } = content;
  const size =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const bytes = (hex: string) => Buffer.from(hex, "hex");
const sequence = (...contents: readonly Uint8Array[]) => der(0x30, ...contents);
const oid = (hex: string) => der(0x06, bytes(hex));
const bitString = (content: Uint8Array) => der(0x03, bytes("00"), content);
const extension = (hex: string, value: Uint8Array) => sequence(oid(hex), der(0x04, value));
const time = (text: string) => der(0x17, Buffer.from(text));

const ECDSA_WITH_SHA256 = sequence(oid("2a8648ce3d040302"));
const COMMON_NAME = oid("550403");
const SUBJECT_ALT_NAME = "551d11";
const BASIC_CONSTRAINTS = "551d13";

/** A new self-signed certificate for 127.0.0.1 and localhost, with its key, in PEM. */
export function createCertificate(notAfter = "491231235959Z") {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = sequence(
    der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from("an upstream of the tests")))),
  );
  const names = sequence(der(0x87, bytes("7f000001")), der(0x82, Buffer.from("localhost")));
  const isAuthority = sequence(der(0x01, bytes("ff")));
  const toBeSigned = sequence(
    der(0xa0, der(0x02, bytes("02"))),
    der(0x02, bytes("01")),
    ECDSA_WITH_SHA256,
    name,
    sequence(time("200101000000Z"), time(notAfter)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(
      0xa3,
      sequence(extension(SUBJECT_ALT_NAME, names), extension(BASIC_CONSTRAINTS, isAuthority)),
    ),
  );
  const signature = bitString(sign("sha256", toBeSigned, privateKey));
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }),
    cert: new X509Certificate(sequence(toBeSigned, ECDSA_WITH_SHA256, signature)).toString(),
  };
}

let trustedCertificate: ReturnType<typeof createCertificate> | undefined;

/** A certificate that this process trusts as it trusts those of public authorities. */
export function trustCertificate() {
  return (trustedCertificate ??= trust(createCertificate()));
}

/** Makes this process trust a certificate. */
export function trust(certificate: ReturnType<typeof createCertificate>) {
  setDefaultCACertificates([...getCACertificates("default"), certificate.cert]);
  return certificate;
}
