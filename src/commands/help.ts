import { VERSION } from "../observability/version.ts";
import { Secrets, Settings } from "../variables.ts";

/** The text of `npm start -- --help`: the commands, and each variable with its default. */
export function helpText(): string {
  const variables = Object.entries({ ...Secrets.shape, ...Settings.shape }).map(
    ([name, variable]) => {
      const { success, data } = variable.safeParse(undefined);
      return [name, success ? toText(data) : "required"] as const;
    },
  );
  const width = Math.max(...variables.map(([name]) => name.length));
  return `Tributary ${VERSION} looks up accounts of a social network and collects their fees.

  npm start                  starts the service, or a sandbox if nothing is configured
  npm run sandbox            starts only the sandbox's chain and network, and prints the variables for a service
      -- --chain-port=8899 --social-port=8898    their ports; 0 picks a free one
  npm run doctor             checks the configuration against its upstreams, without serving
      -- --id=1523400000000000123                shows the address of a social id too
      -- --platform <mint>…                      compares the launch platform's programs with the tested ones too
  npm run status             shows what a service on this machine is doing, read at its ADMIN_PORT
      -- --url=http://10.0.0.5:4001              of another replica
  npm start -- --help        shows this text
  npm start -- --version     shows the version

Variables, from the environment or a file .env (docs/operating.md explains them):

${variables.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join("\n")}
`;
}

function toText(value: unknown): string {
  if (value === undefined) return "unset";
  return Array.isArray(value) ? value.join() || "empty" : `${value as string | number}` || "empty";
}
