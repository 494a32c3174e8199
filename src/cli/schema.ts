// The command `schema`: prints the JSON Schema of configuration files; asks no gateway.
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { Command } from "./command.ts";
import { parseFlags } from "./flags.ts";

export const createSchemaCommand = (plugins: PluginCatalogue): Command => ({
  name: "schema",
  summary: "Print the JSON Schema of configuration files, for editors and validators",
  details:
    "Editors with the YAML language server use it when the first line of a file is\n" +
    "`# yaml-language-server: $schema=sluice.schema.json`, as in exports; with settings.public_url, exports name\n" +
    "/schema.json of the gateway instead.",
  flags: [],
  async run(argv, { env, print }) {
    parseFlags([], argv, env);
    const { documentSchema } = await import("../import/document-schema.ts");
    print(`${JSON.stringify(documentSchema(plugins), null, 2)}\n`);
    return 0;
  },
});
