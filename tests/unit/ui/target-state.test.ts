// The state that pages show for a service and an application from their targets, without a browser.
import { describe, expect, test } from "bun:test";
import { stateOf as applicationState } from "../../../src/ui/pages/applications/application-state.ts";
import { stateOf as serviceState } from "../../../src/ui/pages/services/service-state.ts";
import { toneOf } from "../../../src/ui/parts/status.tsx";

const targets = (states: readonly string[]) =>
  states.map((state) => ({ health: { state, last_error: "refused" } })) as never;

describe("targets that fail and stay in use", () => {
  test.each([
    { states: ["failing"], service: "failing", application: "failing" },
    { states: ["failing", "disabled"], service: "failing", application: "degraded" },
    { states: ["failing", "unhealthy"], service: "failing", application: "failing" },
    { states: ["failing", "healthy"], service: "degraded", application: "degraded" },
    { states: ["failing", "unknown"], service: "degraded", application: "degraded" },
    { states: ["unhealthy", "unhealthy"], service: "unhealthy", application: "unreachable" },
    { states: ["unknown"], service: "unknown", application: "not checked" },
    { states: ["healthy", "unknown"], service: "healthy", application: "served" },
  ])("$states: the service is $service, the application $application", (row) => {
    expect(serviceState({ targets: targets(row.states) })).toBe(row.service);
    const application = {
      enabled: true,
      maintenance: false,
      service: {},
      targets: targets(row.states),
    };
    expect(applicationState(application as never).state).toBe(row.application);
  });

  test.each([
    { probed: "fails", state: "unreachable", tone: "bad" },
    { probed: "responds", state: "served", tone: "good" },
    { probed: "unknown", state: "not checked", tone: "idle" },
  ] as const)("of which nothing is known, while the upstream $probed: $state", (row) => {
    const application = {
      enabled: true,
      maintenance: false,
      service: {},
      targets: targets(["unknown"]),
    };
    const probed = { state: row.probed, message: null };
    expect(applicationState(application as never, probed)).toMatchObject({
      state: row.state,
      tone: row.tone,
    });
  });

  test("have the color of an error", () => {
    expect(toneOf("failing")).toBe("bad");
  });
});
