// Worker events, as subscribers get them.
import { expect, test } from "bun:test";
import { eventKindNames } from "../../../src/control/event-kinds.ts";
import type { Role } from "../../../src/control/principal.ts";
import { at, controlPlane } from "./fixture.ts";

test("all roles get the end of a worker, and admins its reason", () => {
  const { control } = controlPlane();
  const readers = (["viewer", "editor", "admin"] as const).map((role: Role) =>
    control.events.subscribe({ role, kinds: eventKindNames, lastEventId: null }, () => {}),
  );
  const died = { event: "died", worker: 2, revision: 7, restarts: 1 } as const;
  control.onWorkerEvent({ ...died, why: "secret is not defined" });
  const events = readers.map((reader) => {
    const event = reader.next();
    return [event?.kind, JSON.parse(event?.data ?? "null")];
  });
  const shown = { ...died, at };
  expect(events).toEqual([
    ["worker", { ...shown, why: null }],
    ["worker", { ...shown, why: null }],
    ["worker", { ...shown, why: "secret is not defined" }],
  ]);
});
