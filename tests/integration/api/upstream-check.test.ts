// Asking whether an application answers, before anything is made: what is told, and what is refused.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { quietPort } from "../../support/quiet-port.ts";
import { useGateway } from "./client.ts";

const api = useGateway();
let origin: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/broken") return new Response("no", { status: 503 });
      if (pathname === "/moved") return Response.redirect("/app", 302);
      return new Response("ok", {
        status: request.headers.get("host") === "shop.test" ? 200 : 404,
      });
    },
  });
});
afterAll(() => origin.stop(true));

const at = (path = "", port = origin.port) => `http://127.0.0.1:${port}${path}`;
const check = async (body: object) => {
  const { status, body: report } = await api.call("POST /applications/check-upstream", { body });
  return { status, ...report };
};

test("an application that answers is asked by the name that people will use", async () => {
  expect(await check({ upstream: at(), host: "shop.test" })).toEqual({
    ...{ status: 200, ok: true },
    checks: [{ name: "upstream", status: "ok", message: `${at()} answers with status 200` }],
  });
  expect((await check({ upstream: at() })).checks[0].message).toContain("status 404");
  expect((await check({ upstream: at("/moved") })).checks[0].message).toContain("leads to");
});

test("one that is broken is a warning, one that is not there a failure", async () => {
  expect((await check({ upstream: at("/broken") })).checks[0].status).toBe("warning");
  const gone = await check({ upstream: at("", quietPort()) });
  expect(gone).toMatchObject({ ok: false, checks: [{ status: "failed" }] });
  expect(gone.checks[0].message).toEndWith("refused the connection");
});

test.each(["10.0.0.5:3000", "ftp://10.0.0.5", "http://a:b@10.0.0.5", "http://10.0.0.5:99999"])(
  "%s is no address",
  async (upstream) => {
    const { status, error } = await check({ upstream });
    expect(status).toBe(400);
    expect(error).toStartWith("upstream: must ");
  },
);
