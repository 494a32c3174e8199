// A configuration that is to be checked, with what rules need for it; knows no rule.
import type {
  CollectionName,
  GatewayConfig,
  LargeName,
  ResourceOf,
  SingletonName,
} from "../model/gateway-config.ts";
import type { FieldChecks } from "../model/object-rules.ts";
import type { ListenAddress } from "../net/destinations.ts";
import type { PluginCatalogue } from "./plugin-config.ts";
import type { CollectionChange, LargeChange } from "./snapshot.ts";

/** A candidate, the previous configuration and the difference. */
export interface Candidate {
  readonly config: GatewayConfig;
  readonly previous: GatewayConfig | null;
  readonly difference: ConfigDifference;
}

export interface RuleContext {
  readonly checks: FieldChecks;
  readonly managementAddresses: readonly ListenAddress[];
  readonly plugins: PluginCatalogue;
  readonly openSealed: (sealed: string) => string;
}

/** The difference of two configurations, by identity. */
export type ConfigDifference = {
  readonly [K in CollectionName]: K extends LargeName
    ? LargeChange<ResourceOf[K]>
    : CollectionChange<ResourceOf[K]>;
} & Readonly<Record<SingletonName, boolean>>;
