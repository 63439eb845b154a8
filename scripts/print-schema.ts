/** Writes the schema of src/schema to schema.graphql: `npm run schema`. */
import { writeFileSync } from "node:fs";
import { printSdl } from "../src/schema/print-sdl.ts";
import { schema } from "../src/schema/schema.ts";

writeFileSync(new URL("../schema.graphql", import.meta.url), printSdl(schema));
