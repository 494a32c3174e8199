import { readFileSync, readdirSync } from "node:fs";
import { convertWith } from "./tests/unit/import/samples.ts";
function hostsIn(v: any, found = new Set<string>()): Set<string> {
  if (Array.isArray(v)) for (const x of v) hostsIn(x, found);
  else if (v && typeof v === "object")
    for (const [k, x] of Object.entries(v)) {
      if (k === "host" && Array.isArray(x)) x.forEach((h: any) => found.add(h.toLowerCase()));
      else hostsIn(x, found);
    }
  return found;
}
for (const f of readdirSync("/tmp/ck/adapted")) {
  const bytes = new Uint8Array(readFileSync(`/tmp/ck/adapted/${f}`));
  const { document, report } = await convertWith("caddy", bytes);
  console.log("==", f);
  for (const h of hostsIn(JSON.parse(new TextDecoder().decode(bytes)).apps.http)) {
    const own = (document.routes ?? []).filter((r: any) => r.hosts.includes(h));
    const open = own.filter((r: any) => !r.maintenance && r.service_id);
    const named = report.filter((e) => e.level !== "imported" && `${e.what} ${e.why}`.includes(h));
    console.log(
      "  ",
      h,
      "open",
      open.length,
      "closed",
      own.filter((r: any) => r.maintenance).length,
      "local",
      own.filter((r: any) => !r.maintenance && !r.service_id).length,
      "named",
      named.filter((e) => !e.what.startsWith("certificate for")).length,
    );
  }
}
