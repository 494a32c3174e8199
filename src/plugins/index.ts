// The parts list: every plugin that the gateway has; no logic.
import type { AnyPlugin } from "../pdk/definition.ts";
import keyAuth from "./key-auth.ts";

export const plugins: readonly AnyPlugin[] = [keyAuth];
