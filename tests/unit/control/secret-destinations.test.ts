// The rule about destinations of secrets holds for every change, however it is composed.
import { describe, expect, test } from "bun:test";
import type { Draft } from "../../../src/control/draft.ts";
import type { Actor } from "../../../src/control/principal.ts";
import { decode } from "../../../src/model/decode.ts";
import type { CollectionName, ResourceOf } from "../../../src/model/gateway-config.ts";
import { recordSchemas } from "../../../src/model/records.ts";
import { at, configOf, controlPlane, options } from "./fixture.ts";
import { as, refusal } from "./plugin-fixture.ts";

const editor = as("editor").by;
const ID = "01a1fc40-e7a0-70e9-b0cd-2502aa065ff2";
const OTHER = "01a1fc40-e7a0-70e9-b0cd-2502aa065ff3";
const SEALED = "sealed:1:00000000:AAAA";

const object = <K extends CollectionName>(collection: K, id: string, fields: object) =>
  ({
    id,
    created_at: at,
    updated_at: at,
    ...(decode(recordSchemas[collection], fields) as object),
  }) as unknown as ResourceOf[K];

const tracing = (config: object, id = ID) =>
  object("plugins", id, {
    name: "otel-tracing",
    label: id.slice(-1),
    enabled: id === ID,
    config: { endpoint: "http://a", headers: { A: { sealed: SEALED } }, ...config },
  });
const account = (fields: object) =>
  object("acme_accounts", ID, { name: "ca", sealed_eab_key: SEALED, eab_key_id: "k", ...fields });
const secret = object("secrets", OTHER, { name: "s", sealed_value: SEALED });

/** The error that rejects a change of a configuration that has a plugin, an account, single sign-on and a secret. */
async function refusalOf(mutate: (draft: Draft) => void, by: Actor = editor): Promise<string> {
  const config = {
    ...configOf({}),
    plugins: new Map([[ID, tracing({})]]),
    acme_accounts: new Map([[ID, account({})]]),
    secrets: new Map([[OTHER, secret]]),
  };
  const sso = { ...config.sso, issuer: "https://a", client_secret: { sealed: SEALED } };
  const { control } = controlPlane({ ...config, sso });
  return await refusal(control.changes.run({ by, dryRun: true, mutate }));
}

const AGAIN = "must be sent again, because its destination changes";
const headerOf = (what: string) => `403 plugin "2": config.headers.A: ${AGAIN} (${what})`;

describe("a change by an editor is rejected", () => {
  test.each<[string, (draft: Draft) => void, string]>([
    [
      "that writes another destination",
      (draft) => draft.put("plugins", tracing({ endpoint: "http://b" })),
      headerOf("config.endpoint"),
    ],
    [
      "that deletes the object and makes it anew under its id",
      (draft) => {
        draft.remove("plugins", ID);
        draft.put("plugins", tracing({ endpoint: "http://b" }));
      },
      headerOf("config.endpoint"),
    ],
    [
      "that has the secret in an object under another id, although it is sent to the same place",
      (draft) => draft.put("plugins", tracing({}, OTHER)),
      headerOf("config.endpoint").replace('"2"', '"3"'),
    ],
    [
      "that writes the name of a secret in the place of one",
      (draft) => draft.put("plugins", tracing({ headers: { A: { $secret: "s" } } })),
      '403 plugin "2": config.headers.A: only an admin may send the secret "s" to this destination (config.endpoint)',
    ],
    [
      "that leads an account to another directory",
      (draft) => draft.put("acme_accounts", account({ directory_url: "https://b" })),
      `403 ACME account "ca": eab_hmac_key: ${AGAIN} (directory_url)`,
    ],
    [
      "that leads single sign-on to another issuer",
      (draft) => draft.putSingleton("sso", { ...draft.base.sso, issuer: "https://b" }),
      `403 client_secret: ${AGAIN} (issuer)`,
    ],
  ])("%s", async (_, mutate, expected) => {
    expect(await refusalOf(mutate)).toStartWith(`${expected}; `);
    expect(await refusalOf(mutate, as("admin").by)).toBe("no refusal");
    // The program itself.
    expect(await refusalOf(mutate, options.by)).toBe("no refusal");
  });
});

describe("a change by an editor passes", () => {
  test.each<[string, (draft: Draft) => void]>([
    ["that writes something else", (draft) => draft.put("plugins", tracing({ sample_rate: 1 }))],
    [
      "that deletes the object and makes it anew as it was",
      (draft) => {
        draft.remove("plugins", ID);
        draft.put("plugins", tracing({}));
      },
    ],
    [
      "that takes the secret away with the destination",
      (draft) => draft.put("plugins", tracing({ endpoint: "http://b", headers: {} })),
    ],
    [
      "whose secret was sent in the clear",
      (draft) => {
        draft.markSent(SEALED);
        draft.put("plugins", tracing({ endpoint: "http://b" }));
      },
    ],
    [
      "that takes the binding of an account away with the directory",
      (draft) =>
        draft.put(
          "acme_accounts",
          account({ directory_url: "https://b", sealed_eab_key: null, eab_key_id: null }),
        ),
    ],
    ["that deletes the object", (draft) => draft.remove("plugins", ID)],
  ])("%s", async (_, mutate) => {
    expect(await refusalOf(mutate)).toBe("no refusal");
  });

  test("although the stored object lacks a field of the destination that it writes with its default", async () => {
    const ldap = (config: object) =>
      object("plugins", ID, {
        name: "ldap-auth",
        config: {
          url: "ldap://a",
          bind_dn: "cn=a",
          base_dn: "dc=a",
          bind_password: { sealed: SEALED },
          ...config,
        },
      });
    const { control } = controlPlane({ ...configOf({}), plugins: new Map([[ID, ldap({})]]) });
    const defaults = { start_tls: false, ca: null, verify_certificate: true };
    const run = (config: object) =>
      refusal(
        control.changes.run({
          by: editor,
          dryRun: true,
          mutate: (draft) => draft.put("plugins", ldap(config)),
        }),
      );
    expect(await run(defaults)).toBe("no refusal");
    expect(await run({ ...defaults, verify_certificate: false })).toContain(
      "(config.verify_certificate)",
    );
  });
});

test("problems of a value are reported only after the change is authorized", async () => {
  const problem = new Error("problem");
  const late = (draft: Draft) =>
    draft.checkLater(() => {
      throw problem;
    });
  const mutate = (draft: Draft) => {
    late(draft);
    draft.put("plugins", tracing({ endpoint: "http://b" }));
  };
  expect(await refusalOf(mutate)).toStartWith(headerOf("config.endpoint"));
  expect(await refusalOf(mutate, as("admin").by)).toBe("undefined problem");
});
