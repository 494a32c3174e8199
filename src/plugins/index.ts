// The parts list: every plugin that the gateway has; no logic.
import type { AnyPlugin } from "../pdk/definition.ts";

export const plugins: readonly AnyPlugin[] = [];
