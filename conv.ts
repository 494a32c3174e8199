import { readFileSync } from "node:fs";
import { convertWith } from "./tests/unit/import/samples.ts";
const [from, file] = process.argv.slice(2);
const { document, report } = await convertWith(from as never, new Uint8Array(readFileSync(file!)));
for (const r of [...(document.routes ?? [])].sort((a: any, b: any) => b.priority - a.priority)) {
  const s = (document.services ?? []).find((x: any) => x.id === r.service_id);
  console.log(
    r.priority,
    r.name,
    "->",
    s?.name ?? "-",
    JSON.stringify({
      hosts: r.hosts,
      paths: r.paths,
      headers: r.headers,
      methods: r.methods,
      cidrs: r.client_cidrs,
      rw: r.path_rewrite,
      strip: r.strip_path,
      proto: r.protocols,
      r: r.https_redirect,
    }),
    r.maintenance ? "CLOSED" : "",
  );
  for (const p of document.plugins ?? [])
    if (p.route_id === r.id)
      console.log(
        "     +",
        p.name,
        p.priority ?? "",
        JSON.stringify(p.config).slice(0, 300),
        p.when ? "when " + JSON.stringify(p.when) : "",
      );
}
for (const p of document.plugins ?? [])
  if (!p.route_id) console.log("  +", p.name, JSON.stringify(p).slice(0, 400));
if (process.env.S) for (const s of document.services ?? []) console.log(JSON.stringify(s));
for (const e of report) console.log(`[${e.level}] ${e.what}: ${e.why}`);
