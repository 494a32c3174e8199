// Serves the web UI from source with hot reload, and proxies all other requests to a running gateway.
import { parseArgs } from "node:util";
import page from "../src/ui/index.html";

const { values } = parseArgs({
  options: {
    gateway: { type: "string", default: "http://127.0.0.1:9080" },
    port: { type: "string", default: "9081" },
  },
});
const gateway = new URL(values.gateway);

/** Same-origin headers, because the gateway refuses cross-site requests. */
async function passOn(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const headers = new Headers(request.headers);
  for (const name of ["host", "origin", "referer", "sec-fetch-site"]) headers.delete(name);
  // fetch has decoded the body.
  headers.set("accept-encoding", "identity");
  const answer = await fetch(new URL(pathname + search, gateway), {
    method: request.method,
    headers,
    body: request.body,
    redirect: "manual",
    signal: request.signal,
  });
  return new Response(answer.body, { status: answer.status, headers: answer.headers });
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(values.port),
  // Event streams are silent for 15 seconds at a time.
  idleTimeout: 60,
  development: { hmr: true, console: true },
  routes: { "/": page, "/ui/*": page },
  async fetch(request) {
    try {
      return await passOn(request);
    } catch {
      return Response.json({ error: `no gateway answers at ${gateway.origin}` }, { status: 500 });
    }
  },
});
console.log(`web UI with hot reload on ${server.url}, gateway ${gateway.origin}`);
