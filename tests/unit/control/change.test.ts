// The one path of every mutation: order of its steps, and the state after one of them fails.
import { describe, expect, test } from "bun:test";
import type { Draft } from "../../../src/control/draft.ts";
import { ApiError, type ApiStatus, StorageError } from "../../../src/model/error.ts";
import { at, configOf, controlPlane, options, type Steps, service } from "./fixture.ts";

const web = { name: "web" };

interface FailureCase {
  why: string;
  fail: Steps["fail"];
  status: ApiStatus;
  message: string;
  steps: string[];
}

async function refusal(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => null,
    (reason) => reason,
  );
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

describe("a change", () => {
  test("is prepared, stored, activated and announced, in this order", async () => {
    const { control, steps, events } = controlPlane();
    const { revision } = await control.resources.services.create(web, options);
    expect(revision).toBe(2);
    expect(steps.steps).toEqual(["prepare 2", "commit 2", "activate 2", "event 2"]);
    expect(events[0]).toMatchObject({ actor: "tester", summary: 'create service "web"' });
    expect(control.changes.revision).toBe(2);
  });

  test("is stored as the rows that it writes, nothing else", async () => {
    const { control, steps } = controlPlane(configOf({ services: [service("old")] }));
    const { view } = await control.resources.services.create(
      { ...web, targets: [{ host: "a.example", port: 80 }] },
      options,
    );
    const { change } = steps.commits[0]!;
    expect(change.services).toEqual({
      upserts: [expect.objectContaining({ id: view.id })],
      removals: [],
    });
    expect(change.services.upserts[0]).not.toHaveProperty("targets");
    expect(change.targets.upserts).toHaveLength(1);
    expect(change.targets.upserts[0]).not.toHaveProperty("health");
    expect(change.routes).toEqual({ upserts: [], removals: [] });
    expect(change.settings).toBeNull();
  });

  test("without a difference reaches neither the workers nor the database", async () => {
    const { control, steps } = controlPlane();
    const { view } = await control.resources.services.create(web, options);
    steps.steps.length = 0;
    const again = await control.resources.services.replace("web", view, options);
    expect(again.view).toEqual(view);
    expect(again.revision).toBe(2);
    expect(steps.steps).toEqual([]);
  });

  test("requested as a dry run is checked and returned, but not applied", async () => {
    const { control, steps } = controlPlane();
    const { view, revision } = await control.resources.services.create(web, {
      ...options,
      dryRun: true,
    });
    expect(view.name).toBe("web");
    expect(revision).toBe(1);
    expect(steps.steps).toEqual([]);
    expect(control.resources.services.list([]).view).toEqual([]);
    const wrong = { name: "web", host_header: "no host" };
    const error = await refusal(
      control.resources.services.create(wrong, { ...options, dryRun: true }),
    );
    expect(error.message).toStartWith("host_header: must be");
  });
});

describe("a change that fails", () => {
  const cases: FailureCase[] = [
    {
      why: "a worker refuses it: the reason is the client's",
      fail: { prepare: { path: "port", message: "is taken", status: 409 as const } },
      status: 409,
      message: "port: is taken",
      steps: ["prepare 2", "discard 2"],
    },
    {
      why: "a worker dies while preparing: the supervisor's words are kept",
      fail: { prepare: new ApiError(500, "worker 1 stopped; nothing was changed") },
      status: 500,
      message: "worker 1 stopped; nothing was changed",
      steps: ["prepare 2", "discard 2"],
    },
    {
      why: "an unexpected failure while preparing shows no internals",
      fail: { prepare: new Error("DataCloneError: secret") },
      status: 500,
      message: "the workers could not prepare the change; nothing was changed",
      steps: ["prepare 2", "discard 2"],
    },
    {
      why: "the disk is full: the workers forget the version",
      fail: { commit: new Error("SQLITE_FULL") },
      status: 500,
      message: "the change could not be stored: the database refused it; nothing was changed",
      steps: ["prepare 2", "commit 2", "discard 2"],
    },
    {
      why: "the store's own words are kept, and a failing discard does not hide them",
      fail: {
        commit: new StorageError("the disk is full; nothing was changed"),
        discard: new Error("no answer"),
      },
      status: 503,
      message: "the disk is full; nothing was changed",
      steps: ["prepare 2", "commit 2", "discard 2"],
    },
  ];
  test.each(cases)("$why", async ({ fail, status, message, steps: expected }) => {
    const { control, steps } = controlPlane();
    Object.assign(steps.fail, fail);
    const error = await refusal(control.resources.services.create(web, options));
    expect({ status: error.status, message: error.message }).toEqual({ status, message });
    expect(steps.steps).toEqual(expected);
    expect(control.resources.services.list([]).view).toEqual([]);
    expect(control.changes.revision).toBe(1);

    // The next change is not disturbed and gets the same number.
    for (const key of Object.keys(steps.fail)) delete steps.fail[key as keyof typeof steps.fail];
    expect((await control.resources.services.create(web, options)).revision).toBe(2);
  });

  test("after it was stored is kept, and the next change builds on it", async () => {
    const { control, steps } = controlPlane();
    steps.fail.activate = new Error("silent");
    const error = await refusal(control.resources.services.create(web, options));
    expect(error.message).toBe(
      "the change is stored as revision 2, but not all workers serve it yet",
    );
    expect(control.resources.services.get("web").view.name).toBe("web");
    delete steps.fail.activate;
    expect((await control.resources.services.create({ name: "b" }, options)).revision).toBe(3);
  });

  test("for a reason of the configuration reaches no worker", async () => {
    const { control, steps } = controlPlane();
    const error = await refusal(control.resources.routes.create({ service_id: "nope" }, options));
    expect(error.message).toBe('service_id: service "nope" does not exist');
    expect(steps.steps).toEqual([]);
  });
});

describe("a change after which another one is stored first", () => {
  test("drops what it prepared, and runs again", async () => {
    const { control, steps } = controlPlane();
    steps.conflicts = 2;
    const { revision, view } = await control.resources.services.create(web, options);
    expect(revision).toBe(2);
    expect(steps.steps.filter((step) => step !== "event 2")).toEqual([
      ...["prepare 2", "commit 2", "discard 2"],
      ...["prepare 2", "commit 2", "discard 2"],
      ...["prepare 2", "commit 2", "activate 2"],
    ]);
    expect(steps.commits).toHaveLength(1);
    expect(control.resources.services.list([]).view).toEqual([view]);
  });

  test("is refused when it is not valid any more", async () => {
    const { control, steps } = controlPlane();
    steps.conflicts = 1;
    let runs = 0;
    const change = control.changes.run({
      ...options,
      mutate: (draft) => {
        if (++runs === 2) throw new ApiError(409, "taken meanwhile");
        draft.put("services", { ...service("new"), id: "s2" });
      },
    });
    expect((await refusal(change)).message).toBe("taken meanwhile");
    expect(steps.steps).toEqual(["prepare 2", "commit 2", "discard 2"]);
    expect(control.changes.revision).toBe(1);
  });
});

describe("facts", () => {
  const facts = () => [{ kind: "admin_token", token: null }] as const;
  const rename = (name: string) => (draft: Draft) => {
    const old = draft.config.services.get("s1")!;
    if (old.name !== name) draft.put("services", { ...old, name });
  };
  const stored = configOf({ services: [{ ...service("old"), id: "s1" }] });

  test("are stored with the change", async () => {
    const { control, steps } = controlPlane(stored);
    await control.changes.run({ ...options, mutate: rename("new"), facts });
    expect(steps.commits[0]).toMatchObject({ facts: facts() });
  });

  test("are stored without a change of the configuration too", async () => {
    const { control, steps } = controlPlane(stored);
    await control.changes.run({ ...options, mutate: rename("old"), facts });
    expect(steps.facts).toEqual([...facts()]);
    expect(control.changes.revision).toBe(1);
  });

  test("are not stored by a dry run", async () => {
    const { control, steps } = controlPlane(stored);
    for (const name of ["old", "new"])
      await control.changes.run({ ...options, dryRun: true, mutate: rename(name), facts });
    expect(steps.facts).toEqual([]);
    expect(steps.commits).toEqual([]);
  });
});

describe("changes at the same time", () => {
  test("run one after the other, in the order of the requests", async () => {
    const { control, steps } = controlPlane();
    const gate = Promise.withResolvers<void>();
    steps.gate = gate.promise;
    const names = ["a", "b", "c"];
    const all = names.map((name) => control.resources.services.create({ name }, options));
    gate.resolve();
    expect((await Promise.all(all)).map(({ revision }) => revision)).toEqual([2, 3, 4]);
    expect(steps.steps.filter((step) => step.startsWith("prepare"))).toEqual([
      "prepare 2",
      "prepare 3",
      "prepare 4",
    ]);
    expect(steps.steps.indexOf("event 2")).toBeLessThan(steps.steps.indexOf("prepare 3"));
  });

  test("with the same name: exactly one wins", async () => {
    const { control } = controlPlane();
    const all = Array.from({ length: 10 }, () => control.resources.services.create(web, options));
    const results = await Promise.allSettled(all);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(control.resources.services.list([]).view).toHaveLength(1);
  });

  test("with the same condition: the second one finds the object changed", async () => {
    const { control } = controlPlane();
    const { tag } = await control.resources.services.create(web, options);
    const conditions = { match: [tag], onlyIfAbsent: false };
    const results = await Promise.allSettled(
      ["one", "two"].map((description) =>
        control.resources.services.patch("web", { description }, { ...options, conditions }),
      ),
    );
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });
});

describe("times of creation", () => {
  test("never repeat, whatever the clock says", async () => {
    const { control } = controlPlane(configOf({}), () => Date.parse(at));
    for (const name of ["a", "b", "c"]) await control.resources.services.create({ name }, options);
    const times = control.resources.services.list([]).view.map((view) => view.created_at);
    expect(times).toEqual([...new Set(times)].sort());
  });

  test("continue from the stored ones when the clock was set back", async () => {
    const stored = configOf({ services: [service("old")] });
    const { control } = controlPlane(stored, () => Date.parse("2020-01-01T00:00:00Z"));
    const { view } = await control.resources.services.create(web, options);
    expect(view.created_at > at).toBe(true);
  });
});

describe("changes that are paused", () => {
  test("are rejected with Retry-After, waiting ones as well, until they resume", async () => {
    const { control, steps } = controlPlane();
    const gate = Promise.withResolvers<void>();
    steps.gate = gate.promise;
    const underWay = control.resources.services.create({ name: "a" }, options);
    // The turn in which the first one begins.
    await Promise.resolve();
    const waiting = refusal(control.resources.services.create({ name: "b" }, options));
    let isPaused = false;
    const paused = control.changes.turns.pause("a moment, please").then(() => (isPaused = true));
    await Promise.resolve();
    expect(isPaused).toBe(false);
    gate.resolve();
    expect((await underWay).revision).toBe(2);
    await paused;
    const later = refusal(control.resources.services.create({ name: "c" }, options));
    for (const error of [await waiting, await later]) {
      expect(error).toMatchObject({ status: 409, message: "a moment, please" });
      expect(error.headers["retry-after"]).toBe("5");
    }
    expect(control.changes.revision).toBe(2);
    control.changes.turns.resume();
    expect((await control.resources.services.create({ name: "d" }, options)).revision).toBe(3);
  });

  test("wait in order until the pause ends", async () => {
    const { control, steps } = controlPlane();
    const ready = Promise.withResolvers<void>();
    control.changes.turns.holdUntil(ready.promise);
    const all = ["a", "b"].map((name) => control.resources.services.create({ name }, options));
    await Promise.resolve();
    expect(steps.steps).toEqual([]);
    ready.resolve();
    expect((await Promise.all(all)).map(({ revision }) => revision)).toEqual([2, 3]);
  });
});
