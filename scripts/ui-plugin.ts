// Leaves out of the UI what its packages import for their own tests only; used by the build and by `make ui-dev`.
import type { BunPlugin } from "bun";

const leaveOut: BunPlugin = {
  name: "leave-out",
  setup(build) {
    // @rjsf/core exports a helper for tests that wants a validator with eval, which the policy of the page forbids.
    build.onResolve({ filter: /^@rjsf\/validator-ajv8$/ }, () => ({
      path: "validator-ajv8",
      namespace: "left-out",
    }));
    build.onLoad({ filter: /.*/, namespace: "left-out" }, () => ({
      contents: "export default {};",
      loader: "js",
    }));
  },
};

export default leaveOut;
