// What compiling a version gets and makes; compiles nothing.
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { ListenAddress } from "../net/destinations.ts";
import type { FieldChecks } from "../model/object-rules.ts";
import type { Shadows } from "./shadow.ts";
import type { PluginCatalogue } from "./plugin-config.ts";
import type { Snapshot } from "./snapshot.ts";

/** A valid configuration with its snapshot. Pass it as `previous` to compile the next one. */
export interface Compiled {
  readonly config: GatewayConfig;
  readonly snapshot: Snapshot;
  readonly shadows: Shadows;
}

export interface CompileContext {
  readonly revision: number;
  /** Default certificate of https listeners. Pass the same object while it is unchanged. */
  readonly tls: { readonly cert: string; readonly key: string };
  /** Where the management API listens: targets and listeners must not use these addresses. */
  readonly managementAddresses: readonly ListenAddress[];
  readonly checks: FieldChecks;
  /** All plugins that the gateway has. */
  readonly plugins: PluginCatalogue;
  /** Decrypts a stored value. */
  readonly openSealed: (sealed: string) => string;
}
