// A gateway with an editor, the server that an admin has secrets sent to, and that of an attacker.
import { afterAll, beforeAll, expect } from "bun:test";
import { mergePatch } from "../../../src/model/merge-patch.ts";
import { type Answer, type Call, expectOk, type People, usePeople } from "../api/people.ts";
import { SecretCanary } from "./secret-canary.ts";
import type { Sender } from "./secret-senders.ts";

interface Stored {
  readonly id: string;
  /** `/plugins/<id>` */
  readonly line: string;
  /** What must not arrive at the attacker. */
  readonly value: string;
  /** Of a route that has the plugin; empty for everything else. */
  readonly page: string;
}

interface NamedStored extends Stored {
  /** Of the secret. */
  readonly name: string;
  readonly body: object;
}

export const newValue = () => `Canary${crypto.randomUUID().replaceAll("-", "")}`;

export class SecretWorld {
  readonly people: People;
  readonly place = new SecretCanary();
  readonly evil = new SecretCanary();
  readonly origin = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => new Response(await request.text()),
  });
  #editor: Call | null = null;
  #count = 0;

  constructor(people: People) {
    this.people = people;
  }

  async start(): Promise<void> {
    const { people, origin } = this;
    const { email } = await people.create("ed", "editor");
    this.#editor = await people.signIn(email);
    const targets = [{ host: "127.0.0.1", port: origin.port }];
    await expectOk(people.root("POST /services", { name: "app", targets }));
    for (const name of ["another", "not an address"])
      await expectOk(people.root("POST /secrets", { name, value: `value-of-${name}` }));
  }

  async stop(): Promise<void> {
    this.place.stop();
    this.evil.stop();
    await this.origin.stop(true);
  }

  get editor(): Call {
    if (this.#editor === null) throw new Error("nobody is signed in yet");
    return this.#editor;
  }

  newName(): string {
    return `x${++this.#count}`;
  }

  /** The fields that an object needs beside those that say where its secret goes; a plugin gets a route of its own. */
  async frame(collection: Sender["collection"]) {
    const name = this.newName();
    if (collection !== "plugins") return { fields: { name }, page: "" };
    const route = { name, hosts: [`${name}.localhost`], service_id: "app" };
    await expectOk(this.people.root("POST /routes", route));
    const page = `http://${name}.localhost:${this.people.gateway.httpPort}/`;
    return { fields: { label: name, route_id: name }, page };
  }

  /** As an admin writes it, with the secret in it. */
  async store({ collection, write }: Sender, at = this.place): Promise<Stored> {
    const value = newValue();
    const { fields, page } = await this.frame(collection);
    const body = { ...write({ place: at, secret: value }), ...fields };
    const { id } = await expectOk(this.people.root(`POST /${collection}`, body));
    return { id, line: `/${collection}/${id}`, value, page };
  }

  /** As an admin writes it, with the name of a secret. */
  async storeNamed({ collection, secretField, write }: Sender): Promise<NamedStored> {
    const value = newValue();
    const { fields, page } = await this.frame(collection);
    const name = this.newName();
    const sent = secretField === "config.url" ? `${this.place.url}/${value}` : value;
    await expectOk(this.people.root("POST /secrets", { name, value: sent }));
    const body = { ...write({ place: this.place, secret: { $secret: name } }), ...fields };
    const { id } = await expectOk(this.people.root(`POST /${collection}`, body));
    return { id, line: `/${collection}/${id}`, value, page, name, body };
  }

  /** The whole object with a patch applied, as it would be sent back. */
  async patched(line: string, patch: unknown): Promise<unknown> {
    return mergePatch((await this.editor(`GET ${line}`)).body, patch);
  }
}

/** For a test file, with a gateway. */
export function useSecretWorld(): SecretWorld {
  const world = new SecretWorld(usePeople());
  beforeAll(() => world.start());
  afterAll(() => world.stop());
  return world;
}

/** Status 403, the field of the secret in front and that of its destination behind it. */
export function expectRefusal(
  { status, body }: Answer,
  {
    why,
    secretField,
    field,
  }: { readonly why: string; readonly secretField: string; readonly field: string },
): void {
  const error = String(body.error);
  const fields = /\(([^)]*)\)/.exec(error)?.[1]?.split(", ") ?? [];
  const isNamed = error.startsWith(`${secretField}: `) && fields.includes(field);
  expect([why, status, isNamed ? "" : error]).toEqual([why, 403, ""]);
}
