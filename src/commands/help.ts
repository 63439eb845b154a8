import { VERSION } from "../observability/version.ts";
import { Secrets, Settings } from "../variables.ts";

/** Each variable with its default, and its meaning in Markdown. */
export const VARIABLES = Object.entries({ ...Secrets.shape, ...Settings.shape }).map(
  ([name, variable]) => {
    const { success, data = [] } = variable.safeParse(undefined);
    const text =
      Array.isArray(data) && data.length === 0 ? "none" : `${data as string | number}` || "empty";
    return { name, byDefault: success ? text : "required", meaning: variable.description! };
  },
);

/** The widths of the columns of names and defaults. */
const [NAME_WIDTH, DEFAULT_WIDTH] = [28, 9];
/** The marks around code, and a link around its text. */
const MARKDOWN = /`|\[([^\]]*)\]\([^)]*\)/g;

/** The text of `npm start -- --help`: the commands, and each variable with its default. */
export function helpText(): string {
  const variables = VARIABLES.map(
    ({ name, byDefault, meaning }) =>
      `  ${name.padEnd(NAME_WIDTH)}  ${byDefault.padEnd(DEFAULT_WIDTH)}  ${meaning.replace(MARKDOWN, "$1")}`,
  );
  return `Tributary ${VERSION} looks up accounts of a social network and collects their fees.

  npm start                  starts the service, or a sandbox if nothing is configured
  npm run sandbox            starts only the sandbox's chain and network, and prints the variables for a service
      -- --chain-port=8899 --social-port=8898    their ports; 0 picks a free one
  npm run doctor             checks the configuration against its upstreams, without serving
      -- --id=1523400000000000123                shows the address of a social id too
      -- --platform <mint>…                      compares the launch platform's programs with the tested ones too
  npm run status             prints as JSON what a service on this machine is doing, read at its ADMIN_PORT
      -- --url=http://10.0.0.5:4001              of another replica
  npm start -- --help        shows this text
  npm start -- --version     shows the version

Variables, from the environment or a file .env (docs/operating.md explains them):

${variables.join("\n")}
`;
}
