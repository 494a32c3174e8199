// Applications in documents: written by hand without their parts, moved between gateways whole, and names that change hands.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";

const PASSPHRASE = "staple of the whole gateway";

let gateway: Gateway;
let origin: ReturnType<typeof Bun.serve>;
let other: ReturnType<typeof Bun.serve>;
beforeAll(async () => {
  const serve = (name: string) =>
    Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(name) });
  [origin, other] = [serve("origin"), serve("other")];
  gateway = await startGateway({ workers: 2 });
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop(true);
  await other?.stop(true);
});

async function visit(host: string, at = gateway) {
  const response = await fetch(`http://127.0.0.1:${at.httpPort}/`, { headers: { host } });
  const text = await response.text();
  return response.status === 200 ? text : response.status;
}

interface Imported {
  readonly changes: readonly { readonly action: string; readonly kind: string }[];
}
const importing = (document: object, query = "", at = gateway): Promise<Imported> =>
  at.ok("POST", `/api/v1/import${query}`, { format: 1, ...document });
const kindsOf = ({ changes }: Imported) => changes.map(({ action, kind }) => `${action} ${kind}`);
const read = (name: string, at = gateway) => at.ok("GET", `/api/v1/applications/${name}`);
const addressOf = (server: typeof origin) => `http://127.0.0.1:${server.port}`;

const blue = (domains: string[]) => ({ name: "blue", domains, upstream: addressOf(origin) });
const green = (domains: string[]) => ({ name: "green", domains, upstream: addressOf(other) });

describe("a document with applications alone", () => {
  test("creates their parts, and certificates soon after", async () => {
    const applications = [blue(["blue.test", "moving.test"]), green(["green.test"])];
    const made = await importing({ applications });
    expect(kindsOf(made).toSorted()).toEqual([
      ...["create application", "create application", "create route", "create route"],
      ...["create service", "create service", "create target", "create target"],
    ]);
    expect(await visit("moving.test")).toBe("origin");
    expect(await visit("green.test")).toBe("other");
    const { certificate } = await eventually(async () => {
      const application = await read("blue");
      return application.certificate === null ? null : application;
    });
    expect(certificate).toMatchObject({ domains: ["blue.test", "moving.test"], status: "valid" });
  });

  test("changes nothing when it is imported again", async () => {
    await eventually(async () => (await read("green")).certificate !== null);
    const before = (await gateway.ok("GET", "/api/v1/admin/status")).revision;
    const again = await importing({
      applications: [blue(["blue.test", "moving.test"]), green(["green.test"])],
    });
    expect(again.changes).toEqual([]);
    expect((await gateway.ok("GET", "/api/v1/admin/status")).revision).toBe(before);
  });

  test("changes nothing when it replaces everything, also beside others of the same kind", async () => {
    const document = {
      services: [{ name: "beside" }],
      routes: [{ name: "beside", hosts: ["beside.test"], service_id: "beside" }],
      certificates: [],
      plugins: [],
      targets: [],
      applications: [blue(["blue.test", "moving.test"]), green(["green.test"])],
    };
    const first = await importing(document, "?mode=replace");
    expect(kindsOf(first)).toEqual(["create service", "create route"]);
    expect((await importing(document, "?mode=replace")).changes).toEqual([]);
    expect(await visit("blue.test")).toBe("origin");
    const { drift, certificate } = await read("blue");
    expect(drift).toEqual([]);
    expect(certificate.status).toBe("valid");
    for (const kind of ["routes", "services"]) await gateway.ok("DELETE", `/api/v1/${kind}/beside`);
  });

  test("moves a name from one to another at once", async () => {
    const serviceId = (await read("blue")).service.id;
    // Whoever gets it stands first.
    await importing({ applications: [green(["green.test", "moving.test"]), blue(["blue.test"])] });
    expect(await visit("moving.test")).toBe("other");
    expect(await visit("blue.test")).toBe("origin");
    const application = await read("blue");
    expect(application).toMatchObject({ drift: [], service: { id: serviceId } });
    expect((await read("green")).drift).toEqual([]);
  });

  test("moves a name to a new one", async () => {
    const red = { name: "red", domains: ["moving.test"], upstream: addressOf(origin) };
    await importing({ applications: [red, green(["green.test"])] });
    expect(await visit("moving.test")).toBe("origin");
    const back = { format: 1, applications: [green(["green.test", "moving.test"])] };
    const response = await gateway.api("POST", "/api/v1/import", back);
    expect(response.status).toBe(409);
    expect(await response.json()).toEqual({
      error: expect.stringContaining(
        'applications[0]: route "red" of application "red" serves moving.test already (line 1, column ',
      ),
    });
    await gateway.ok("DELETE", "/api/v1/applications/red");
  });

  test("is refused with the location of the error", async () => {
    const refused = async (fields: object) => {
      const body = { format: 1, applications: [{ ...blue(["x.test"]), name: "wrong", ...fields }] };
      const response = await gateway.api("POST", "/api/v1/import", body);
      return [response.status, ((await response.json()) as { error: string }).error];
    };
    expect(await refused({ upstream: null })).toEqual([
      400,
      expect.stringContaining(
        "applications[0].upstream: is required, or targets, or a redirect of the path / (line 1, column ",
      ),
    ]);
    expect(await refused({ https: { mode: "acme" } })).toEqual([
      400,
      expect.stringContaining(
        'applications[0].https.mode: "acme" requires an enabled ACME account (line 1, column ',
      ),
    ]);
  });
});

describe("a whole export", () => {
  const exported = () => gateway.ok("GET", "/api/v1/export?format=json");

  test("with a moved name applies the move", async () => {
    const document = await exported();
    for (const application of document.applications)
      application.domains =
        application.name === "blue" ? ["blue.test", "swapped.test"] : ["green.test"];
    await importing(document);
    expect(await visit("swapped.test")).toBe("origin");
    expect((await read("blue")).drift).toEqual([]);
    const again = await importing(document);
    expect(again.changes).toEqual([]);
    expect(await visit("swapped.test")).toBe("origin");
  });

  test("carries manual changes as such", async () => {
    await gateway.ok("PATCH", "/api/v1/services/blue", { connect_timeout: 777 });
    const drift = (await read("blue")).drift;
    expect(drift).toHaveLength(1);
    const document = await exported();
    expect((await importing(document, "?mode=replace")).changes).toEqual([]);
    expect((await read("blue")).drift).toEqual(drift);
  });

  test("makes another gateway equal, including the parts", async () => {
    const response = await gateway.api("GET", "/api/v1/export?format=json&secrets=1", undefined, {
      "x-passphrase": PASSPHRASE,
    });
    const document = await response.json();
    const second = await startGateway({ workers: 1 });
    try {
      const imported = await second.api("POST", "/api/v1/import?dry_run=1", document, {
        "x-passphrase": PASSPHRASE,
      });
      const kinds = kindsOf((await imported.json()) as Imported).toSorted();
      expect(kinds.slice(0, 4)).toEqual([
        ...["create application", "create application"],
        ...["create certificate", "create certificate"],
      ]);
      expect(kinds.filter((kind) => kind === "create service")).toHaveLength(2);
    } finally {
      await second.stop();
    }
  });

  test("without its ids, for a gateway with the same under other ids, keeps the parts together", async () => {
    const document = await exported();
    const second = await startGateway({ workers: 1 });
    try {
      const applications = document.applications.map(
        ({ parts, ...rest }: { parts: unknown }) => rest,
      );
      await importing({ applications }, "", second);
      const before = await read("green", second);
      const { services, targets, routes } = document;
      await importing(
        { applications: document.applications, services, targets, routes },
        "",
        second,
      );
      const after = await read("green", second);
      expect(after.drift).toEqual([]);
      expect(after.service.id).toBe(before.service.id);
      expect(after.targets[0].id).toBe(before.targets[0].id);
      expect(await visit("green.test", second)).toBe("other");
    } finally {
      await second.stop();
    }
  });

  test("without keys, for an empty gateway, is served there with new keys", async () => {
    const { applications, services, targets, routes } = await exported();
    const second = await startGateway({ workers: 1 });
    try {
      await importing({ applications, services, targets, routes, certificates: [] }, "", second);
      expect(await visit("green.test", second)).toBe("other");
      const { certificate, drift } = await eventually(async () => {
        const application = await read("green", second);
        return application.certificate === null ? null : application;
      });
      expect({ certificate, drift }).toMatchObject({
        certificate: { domains: ["green.test"], status: "valid" },
        drift: [],
      });
    } finally {
      await second.stop();
    }
  });

  test("that omits an application removes it with its parts", async () => {
    const { applications } = await exported();
    const left = applications.filter(({ name }: { name: string }) => name === "blue");
    await importing({ applications: left }, "?mode=replace");
    expect(await visit("green.test")).toBe(404);
    for (const path of ["applications/green", "services/green", "routes/green"])
      expect((await gateway.api("GET", `/api/v1/${path}`)).status).toBe(404);
    expect(await visit("blue.test")).toBe("origin");
  });
});

describe("a restored revision", () => {
  test("restores an application with all its parts", async () => {
    const { revision } = await gateway.ok("GET", "/api/v1/admin/status");
    const before = await read("blue");
    await gateway.ok("DELETE", "/api/v1/applications/blue");
    expect(await visit("blue.test")).toBe(404);
    await gateway.ok("POST", `/api/v1/revisions/${revision}/restore`);
    expect(await visit("blue.test")).toBe("origin");
    const { service, routes, drift } = await read("blue");
    expect({ service, routes, drift }).toEqual({
      service: before.service,
      routes: before.routes,
      drift: before.drift,
    });
  });
});

describe("a plain export that was written while there was a certificate of the local CA", () => {
  test("can be applied after its deletion, and the application gets another one if it needs it", async () => {
    const name = "interim";
    const body = { name, domains: ["interim.test"], upstream: addressOf(origin) };
    await gateway.ok("POST", "/api/v1/applications", body);
    const made = await eventually(async () => {
      const application = await read(name);
      return application.certificate === null ? null : application;
    });
    const exported = await gateway.ok("GET", "/api/v1/export");
    await gateway.ok("PATCH", `/api/v1/applications/${name}`, { https: { mode: "off" } });
    expect((await read(name)).certificate).toBeNull();
    await gateway.ok("POST", "/api/v1/import?mode=replace", exported);
    const back = await eventually(async () => {
      const application = await read(name);
      return application.certificate === null ? null : application;
    });
    expect(back.certificate).toMatchObject({ source: "local_ca", status: "valid" });
    expect(back.certificate.fingerprint).not.toBe(made.certificate.fingerprint);
    expect(back.drift).toEqual([]);
    expect(await visit("interim.test")).toBe("origin");
    await gateway.ok("DELETE", `/api/v1/applications/${name}`);
  });
});
