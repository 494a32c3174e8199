// Writes docs/plugins/: a page for each plugin and the list of all, from their definitions; run it with `make docs`.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadPlugins } from "../src/pdk/catalogue.ts";
import { pluginFiles } from "../src/plugins/index.ts";
import { listPage, pageOf } from "./plugin-page.ts";

const plugins = await loadPlugins(pluginFiles);
const folder = join(import.meta.dir, "../docs/plugins");
mkdirSync(folder, { recursive: true });
for (const name of readdirSync(folder)) if (name.endsWith(".md")) rmSync(join(folder, name));
for (const plugin of plugins) writeFileSync(join(folder, `${plugin.name}.md`), pageOf(plugin));
writeFileSync(join(folder, "README.md"), listPage(plugins));
