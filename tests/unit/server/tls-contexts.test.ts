// Contexts of 10,000 certificates: none is made before a handshake needs it, and each once for equal rules.
import { expect, test } from "bun:test";
import { TlsContexts } from "../../../src/dataplane/server/tls-contexts.ts";
import { decode } from "../../../src/model/decode.ts";
import { type Listener, type ListenerInput, listenerInput } from "../../../src/model/listener.ts";
import { selfSigned } from "../../support/certificate.ts";

const listenerOf = (more: Partial<ListenerInput> = {}): Listener => ({
  ...decode(listenerInput, { name: "own", port: 1, protocol: "https", ...more }),
  id: "own",
  created_at: "",
  updated_at: "",
});

test("a context is made at the first handshake that needs it", async () => {
  const { cert, key } = await selfSigned();
  let read = 0;
  const certificates = Array.from({ length: 10_000 }, () => ({
    get cert() {
      read++;
      return cert;
    },
    key,
  }));
  const contexts = new TlsContexts();
  const [one, same, newer] = [listenerOf(), listenerOf(), listenerOf({ tls_min_version: "1.3" })];
  const plans = () => [one, same, newer].map((listener) => ({ listener }) as never);
  const contextOf = (listener: Listener, at: number) =>
    contexts.rulesOf(listener, plans).contextOf(certificates[at]!);
  contexts.rulesOf(one, plans);
  expect(read).toBe(0);
  const first = contextOf(one, 7);
  expect([contextOf(one, 7) === first, contextOf(same, 7) === first, read]).toEqual([
    true,
    true,
    1,
  ]);
  expect([contextOf(newer, 7) === first, read]).toEqual([false, 2]);
  for (let at = 0; at < 100; at++) contextOf(one, at);
  expect(read).toBe(101);
  // A listener that changes in something else keeps them.
  const renamed = { ...one, name: "renamed", idle_timeout: 5 };
  const rules = contexts.rulesOf(renamed, () => [{ listener: renamed } as never]);
  expect([rules.contextOf(certificates[7]!) === first, read]).toEqual([true, 101]);
});
