import { once } from "node:events";
import { createServer } from "node:net";
import { bad, poor, type Finding } from "../checks/finding.ts";
import type { Config } from "../config.ts";
import { codeOf } from "../observability/thrown.ts";

/** Listens for a moment where the service would. */
export async function checkListening({ host, port, adminPort }: Config): Promise<Finding[]> {
  const findings = [await tryPort("PORT", host, port)];
  if (adminPort !== undefined && findings[0]?.variable !== "HOST")
    findings.push(await tryPort("ADMIN_PORT", host, adminPort));
  return findings.filter((finding) => finding !== undefined);
}

async function tryPort(name: string, host: string, port: number): Promise<Finding | undefined> {
  const server = createServer();
  try {
    await once(server.listen(port, host), "listening");
    return undefined;
  } catch (error) {
    const code = codeOf(error);
    if (code === "EADDRINUSE")
      return poor(name, `${port} is in use: if not by this service, set a free port`);
    if (code === "EACCES")
      return bad(name, `this user may not open ${port}: set a port above 1023`);
    const text = `${host} is no address of this machine (${code}): use ::, 0.0.0.0 or 127.0.0.1`;
    return bad("HOST", text);
  } finally {
    server.close();
  }
}
