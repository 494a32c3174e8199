// A testing aid: ends this process as a crash does, at a step that a test names in the environment.

/** The steps of a change, of this node or (`follow_`) of another one; and of a process that takes over from another one. */
type Step =
  | "after_take_over"
  | "before_append"
  | "after_append"
  | "after_store"
  | "after_activate"
  | "follow_after_prepare"
  | "follow_after_store"
  | "follow_after_activate";

/** `SLUICE_FAIL_POINT=after_append:3`: at the third time. Read once: without it a step costs a comparison with undefined. */
const [step, count = "1"] = process.env["SLUICE_FAIL_POINT"]?.split(":") ?? [];

const state = { left: Number(count), isFollowing: false };

export function failPoint(reached: Step): void {
  if (step === undefined) return;
  if (reached === "after_store" || reached === "follow_after_store")
    state.isFollowing = reached === "follow_after_store";
  if (reached === step && --state.left === 0) process.kill(process.pid, "SIGKILL");
}

/** All workers serve the last change that was stored. */
export function activationFailPoint(): void {
  failPoint(state.isFollowing ? "follow_after_activate" : "after_activate");
}
