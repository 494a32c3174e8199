// A minimal export: it shows no difference to its gateway, and makes an empty one equal.
import { describe, expect, test } from "bun:test";
import { parseJson } from "../../../../src/api/json-body.ts";
import { ApiError } from "../../../../src/model/error.ts";
import type { ImportMode } from "../../../../src/model/export-document.ts";
import { opened } from "../../../../src/import/transfer/document-reader.ts";
import { readSource } from "../../../../src/import/transfer/source.ts";
import { selfSigned } from "../../../support/certificate.ts";
import { Random, seedOfRun } from "../../../support/random.ts";
import { randomConfiguration } from "../../../support/random-configuration.ts";
import { configOf, context, controlPlane, options } from "../../../unit/control/fixture.ts";

type Control = ReturnType<typeof controlPlane>["control"];
const fresh = (): Control => controlPlane(configOf({})).control;
const viewer = { role: "admin" } as const;

async function take(control: Control, document: object, how: { mode?: ImportMode; dryRun?: true }) {
  const source = opened(await readSource(JSON.stringify(document), "json", parseJson));
  const { mode = "merge", dryRun = false } = how;
  return await control.transfer.import(source, { by: options.by, mode, dryRun });
}

/** The full export with positions for ids, and without times. */
async function comparable(control: Control): Promise<unknown> {
  const whole = await control.transfer.exportPlain(viewer, "test");
  let text = JSON.stringify(whole);
  for (const [name, list] of Object.entries(whole))
    if (Array.isArray(list))
      for (const [index, { id }] of list.entries()) text = text.replaceAll(id, `${name} ${index}`);
  return JSON.parse(text, (name, value) => (/^(created|updated)_at$/.test(name) ? "" : value));
}

const minimalOf = (control: Control) => control.transfer.exportMinimal(viewer, "test");

async function checkRoundTrip(control: Control): Promise<void> {
  const minimal = await minimalOf(control);
  for (const mode of ["merge", "replace"] as const)
    expect((await take(control, minimal, { mode, dryRun: true })).changes).toEqual([]);
  for (const mode of ["merge", "replace"] as const) {
    const other = fresh();
    await take(other, minimal, { mode });
    expect(await comparable(other)).toEqual(await comparable(control));
    expect(await minimalOf(other)).toEqual(minimal);
  }
}

describe("a minimal export", () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  test.each(Array.from({ length: 5 }, (_, index) => index))(
    `restores random configuration %i of seed ${seed}`,
    async () => {
      const accepts = (document: object) =>
        take(fresh(), document, {}).then(
          () => true,
          (error) => {
            if (!(error instanceof ApiError)) throw error;
            return false;
          },
        );
      const document = await randomConfiguration(random, context.plugins, accepts);
      const control = fresh();
      await take(control, document, {});
      await checkRoundTrip(control);
    },
  );

  test("has names for ids, paths as texts, and nothing that is as the schema says", async () => {
    const control = fresh();
    const written = {
      settings: {},
      services: [{ name: "web" }],
      targets: [{ host: "10.0.0.5", port: 80, service_id: "web" }],
      routes: [
        { name: "shop", hosts: ["a.test"], paths: ["/x", "=/y", "~^/z"], service_id: "web" },
      ],
      plugins: [{ name: "cors", config: { max_age: 5 }, route_id: "shop" }],
    };
    await take(control, { format: 1, ...written }, {});
    expect(await minimalOf(control)).toMatchObject(written);
    expect((await minimalOf(control))["routes"]).toEqual(written.routes);
    await checkRoundTrip(control);
  });

  test("has ids in a list of objects that have nothing else to find them by", async () => {
    const control = fresh();
    const secret_hash = "ab".repeat(32);
    const credentials = [{ type: "key", consumer_id: "ada", secret_hash }];
    await take(control, { format: 1, consumers: [{ username: "ada" }], credentials }, {});
    const minimal = await minimalOf(control);
    expect(minimal).toMatchObject({ consumers: [{ username: "ada" }] });
    expect(minimal["credentials"]).toEqual([
      { id: expect.any(String), type: "key", consumer_id: "ada", secret_hash: "***" },
    ]);
    expect((await take(control, minimal, { mode: "replace", dryRun: true })).changes).toEqual([]);
  });

  test("finds masked secrets in items of lists", async () => {
    const control = fresh();
    const http = { url: "https://logs.test/in", headers: { "X-Token": "hidden" } };
    const plugins = [{ name: "access-log", config: { sinks: [{ http }] } }];
    await take(control, { format: 1, plugins }, {});
    const minimal = await minimalOf(control);
    expect(JSON.stringify(minimal)).not.toContain("hidden");
    expect((await take(control, minimal, { mode: "replace", dryRun: true })).changes).toEqual([]);
  });

  test("has no material that a CA issues, and no facts of a certificate", async () => {
    const control = fresh();
    const { cert: certificate, key } = await selfSigned("a.test");
    const certificates = ["acme", "upload"].map((source) => {
      const sealed_key = { plain: key };
      return { name: source, source, domains: ["a.test"], certificate, sealed_key };
    });
    await take(control, { format: 1, certificates }, {});
    const minimal = await minimalOf(control);
    expect(minimal["certificates"]).toEqual([
      { name: "acme", domains: ["a.test"], source: "acme" },
      { name: "upload", domains: ["a.test"], certificate: expect.any(String), sealed_key: "***" },
    ]);
    expect((await take(control, minimal, { mode: "replace", dryRun: true })).changes).toEqual([]);
  });

  test("has only the parts of an application that were changed by hand", async () => {
    const control = fresh();
    const wiki = {
      name: "wiki",
      domains: ["wiki.test"],
      upstream: "http://10.0.0.5:3000",
      https: { mode: "off" },
    };
    await take(control, { format: 1, applications: [wiki] }, {});
    const minimal = await minimalOf(control);
    expect(minimal).toMatchObject({ services: [], targets: [], routes: [] });
    expect(minimal["applications"]).toEqual([wiki]);
    await checkRoundTrip(control);
    const service = { name: "wiki", connect_timeout: 1234, description: "mine" };
    await take(control, { format: 1, services: [service] }, {});
    expect(await minimalOf(control)).toMatchObject({
      services: [{ name: "wiki", connect_timeout: 1234 }],
      applications: [{ name: "wiki", parts: expect.anything() }],
    });
    await checkRoundTrip(control);
  });

  test("has the parts of an application that other objects refer to", async () => {
    const control = fresh();
    const wiki = { name: "wiki", domains: ["wiki.test"], upstream: "http://10.0.0.5:3000" };
    await take(control, { format: 1, applications: [{ ...wiki, https: { mode: "off" } }] }, {});
    await take(control, { format: 1, plugins: [{ name: "cors", route_id: "wiki" }] }, {});
    expect((await minimalOf(control))["routes"]).toMatchObject([{ name: "wiki" }]);
    await checkRoundTrip(control);
  });
});
