// An editor tries in every way to have stored secrets sent to a server of their own, which takes down what it is sent.
import { describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { dnsProviders } from "../../../src/acme/dns/index.ts";
import { sinks } from "../../../src/observe/alerts/sinks.ts";
import { markOf } from "../../../src/model/destination.ts";
import { recordSchemas } from "../../../src/model/records.ts";
import { plugins } from "../../support/plugins.ts";
import { eventually } from "../../support/poll.ts";
import { SecretCanary } from "./secret-canary.ts";
import { type Sender, senders } from "./secret-senders.ts";
import { expectRefusal, useSecretWorld } from "./secret-world.ts";

const world = useSecretWorld();
/** Where admins have secrets sent, and what an attacker has. */
const { place, evil } = world;

describe.each(senders.map((sender) => [sender.name, sender] as const))("%s", (_, sender) => {
  const { secretField, collection, moves, write, harmless, send, takesNames = true } = sender;

  test("an editor who changes it without sending the secret is refused, and both fields are named", async () => {
    const { line, id, value, page } = await world.store(sender);
    for (const [field, patch] of Object.entries(moves(evil, place))) {
      const whole = await world.patched(line, patch);
      for (const [way, body] of [
        [`PATCH ${line}`, patch],
        [`PATCH ${line}?dry_run=1`, patch],
        [`PUT ${line}`, whole],
        [`PUT ${line}?dry_run=1`, whole],
      ] as const)
        expectRefusal(await world.editor(way, body), {
          why: `${way} ${field}`,
          secretField,
          field,
        });
    }
    if (send === undefined) return;
    await send({ id, page, editor: world.editor });
    await eventually(() => place.hasSeen(value));
    expect(evil.hasSeen(value)).toBe(false);
  });

  test("an editor may change everything else, and send back what was read", async () => {
    const { line } = await world.store(sender);
    expect(
      (await world.editor(`PUT ${line}`, (await world.editor(`GET ${line}`)).body)).body.error,
    ).toBeUndefined();
    expect((await world.editor(`PATCH ${line}`, harmless)).body.error).toBeUndefined();
    expect(
      (await world.editor(`PUT ${line}`, await world.patched(line, harmless))).body.error,
    ).toBeUndefined();
    expect((await world.editor(`PATCH ${line}`, { enabled: false })).body.enabled).toBe(false);
    expect((await world.editor(`PATCH ${line}`, { enabled: true })).body.enabled).toBe(true);
  });

  test("an editor who sends the secret again may change it, an admin without it", async () => {
    const mine = await world.store(sender);
    const { name: _, ...fields } = write({ place: evil, secret: mine.value });
    expect((await world.editor(`PATCH ${mine.line}`, fields)).body.error).toBeUndefined();
    const other = await world.store(sender);
    const [[, patch] = []] = Object.entries(moves(evil, place));
    expect((await world.people.root(`PATCH ${other.line}`, patch)).body.error).toBeUndefined();
    if (send === undefined) return;
    for (const { id, page, value } of [mine, other]) {
      await send({ id, page, editor: world.editor });
      // That it arrives shows that the attempts above would have been seen.
      await eventually(() => evil.hasSeen(value));
    }
  });

  if (takesNames)
    test("an editor cannot send a named secret where no admin chose", async () => {
      const { line, id, name, body, value, page } = await world.storeNamed(sender);
      for (const [field, patch] of Object.entries(moves(evil, place))) {
        const whole = await world.patched(line, patch);
        for (const [way, sent] of [
          [`PATCH ${line}`, patch],
          [`PATCH ${line}?dry_run=1`, patch],
          [`PUT ${line}`, whole],
        ] as const)
          expectRefusal(await world.editor(way, sent), {
            why: `${way} ${field}`,
            secretField,
            field,
          });
      }
      const copy = {
        ...body,
        ...write({ place: evil, secret: { $secret: name } }),
        ...nameOf(collection),
      };
      const other = { ...body, ...write({ place, secret: { $secret: "another" } }) };
      for (const [way, sent] of [
        [`POST /${collection}`, copy],
        [`POST /${collection}`, { ...copy, ...write({ place, secret: { $secret: name } }) }],
        [`PUT /${collection}/${crypto.randomUUID()}`, copy],
        [`PATCH ${line}`, { ...other, name: undefined }],
        [`PUT ${line}`, other],
      ] as const) {
        const answer = await world.editor(way, sent);
        expect([way, answer.status, answer.body.error]).toEqual([
          way,
          403,
          expect.stringMatching(/^config\..*: only an admin may send the secret ".*" to /),
        ]);
      }
      expect((await world.editor(`PATCH ${line}`, harmless)).body.error).toBeUndefined();
      if (send !== undefined) {
        await send({ id, page, editor: world.editor });
        await eventually(() => place.hasSeen(value));
      }
      expect(evil.hasSeen(value)).toBe(false);
      expect((await world.editor(`DELETE ${line}`)).status).toBe(200);
      expect((await world.editor(`PUT ${line}`, body)).status).toBe(403);
      expect((await world.people.root(`PUT ${line}`, body)).status).toBe(200);
    });

  if (send !== undefined)
    test("a redirect does not lead it to another origin", async () => {
      const moving = new SecretCanary();
      moving.redirectTo = evil.url;
      const { id, value, page } = await world.store(sender, moving);
      await send({ id, page, editor: world.editor });
      await eventually(() => moving.hasSeen(value));
      // What comes next would have followed.
      const next = await world.store(sender);
      await send({ ...next, editor: world.editor });
      await eventually(() => place.hasSeen(next.value));
      expect(evil.hasSeen(value)).toBe(false);
      moving.stop();
    });
});

/** Of a copy. */
const nameOf = (collection: Sender["collection"]) =>
  collection === "plugins" ? { label: world.newName(), route_id: null } : { name: world.newName() };

describe("the table above", () => {
  const kinds = [
    ...plugins.map(({ name, config }) => ({ kind: name, config })),
    ...Object.values(sinks).map(({ type, config }) => ({ kind: `${type} alert`, config })),
    ...Object.values(dnsProviders).map(({ type, config }) => ({ kind: `${type} dns`, config })),
    { kind: "account", config: recordSchemas.acme_accounts },
  ];
  const kindOf = ({ collection, write }: Sender): string => {
    const { name, type } = write({ place, secret: "x" }) as { name?: string; type?: string };
    if (collection === "plugins") return name ?? "";
    return collection === "acme/accounts"
      ? "account"
      : `${type} ${collection === "alerts" ? "alert" : "dns"}`;
  };

  test("has every field that is marked as a destination, and every secret that is sent there", () => {
    const general = (path: string) => path.replace(/^config\./, "").replaceAll(/\[0\]/g, "[]");
    const tried = senders.flatMap((sender) => {
      const { secretField, moves } = sender;
      const paths = [secretField.replace(/\.X-Token$/, "[]"), ...Object.keys(moves(evil, place))];
      return paths.map((path) => `${kindOf(sender)}: ${general(path)}`);
    });
    const marked = kinds.flatMap(({ kind, config }) => {
      const fields = fieldsOf(config);
      if (!fields.some(({ isDestination }) => isDestination)) return [];
      return fields
        .filter(
          ({ isDestination, isSecret, staysBecause }) =>
            isDestination || (isSecret && staysBecause === null),
        )
        .map(({ path }) => `${kind}: ${path}`);
    });
    expect(new Set(tried)).toEqual(new Set(marked));
  });
});

/** All fields of a schema, `sinks[].http.url`. */
function fieldsOf(schema: TSchema, path = ""): (ReturnType<typeof markOf> & { path: string })[] {
  const inner = (of: unknown, at: string) => [
    { ...markOf(of as TSchema), path: at },
    ...fieldsOf(of as TSchema, at),
  ];
  return [
    ...Object.entries((schema.properties ?? {}) as object).flatMap(([name, of]) =>
      inner(
        of,
        [path, (of as TSchema)["x-sent-as"] ?? name].filter((part) => part !== "").join("."),
      ),
    ),
    ...Object.values((schema.patternProperties ?? {}) as object).flatMap((of) =>
      inner(of, `${path}[]`),
    ),
    ...(schema.items === undefined ? [] : inner(schema.items, `${path}[]`)),
    ...((schema.anyOf ?? []) as TSchema[]).flatMap((of) => fieldsOf(of, path)),
  ];
}
