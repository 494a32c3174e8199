// What is known beside the labels of a container; reads no label.
import type { Document } from "../control/body.ts";
import type { SharedPorts } from "../import/traefik/entry-points.ts";
import type { Discovery } from "../model/discovery.ts";
import type { TextCheck } from "../model/object-rules.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { Claims } from "./claims.ts";
import type { ListedContainer } from "./docker-client.ts";

export interface Discovered {
  readonly rules: Discovery["docker"];
  readonly plugins: PluginCatalogue;
  /** Host name of the machine; in a container, Docker sets it to the beginning of the container's id. */
  readonly hostname: string;
  /** Ids of containers that are about to stop. */
  readonly stopping: ReadonlySet<string>;
  /** Variables of a container by its id, where they are read. */
  readonly environments: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly sharedPorts: SharedPorts;
  readonly regex: TextCheck;
  /** The mark of its objects. */
  readonly source: string;
  readonly claims: Claims;
  /** `10.0.0.2` and `10.0.0.2 80`: targets of what was served before anything was claimed. */
  readonly served: ReadonlySet<string>;
}

export interface ContainerContext extends Discovered {
  /** The container that the gateway itself runs in; undefined: none. */
  readonly own: ListedContainer | undefined;
  readonly nameOf: (container: ListedContainer) => string;
  /** Fields of its targets. */
  readonly stateOf: (container: ListedContainer) => Document;
}
