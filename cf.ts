import { caddyfile } from "./tests/e2e/import/caddy-sites.ts";
await Bun.write(
  "/tmp/ck/e2e.Caddyfile",
  caddyfile({
    port: 80,
    one: 9001,
    two: 9002,
    auth: 9003,
    hash: "$2b$05$MhkTtlyhT7jGs040w89tq.moFGeyONR4LfL4X3wzJe7AffwYOLTo6",
  }),
);
