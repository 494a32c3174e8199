import { startDataPlane } from "./support/data-plane.ts";
const gateway = await startDataPlane({
  services: [{ name: "app", targets: [{ port: Number(process.argv[2]) }] }],
  routes: [{ name: "all", service_id: "app", paths: [{ type: "prefix", value: "/" }] }],
});
console.log(gateway.port);
for await (const line of console) if (line === "end") process.exit(0);
