// Where plugins hear of the end of requests when they want nothing before; knows no single request and no plugin.
import type { Refetched } from "../../pdk/context.ts";
import type { Generation } from "../generation.ts";
import type { RequestContext } from "../request-context.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { Chain } from "./chain.ts";
import { declaredLength, HeldBody } from "./held-body.ts";
import { ServedScene, type Surroundings } from "./served-scene.ts";
import type { VisitScene } from "./visit-scene.ts";

/** By route, or the generation itself where no route matched, for as long as both are there. */
const scenes = new WeakMap<Generation, WeakMap<RouteRuntime | Generation, HeardScene>>();

/** One for all requests of the route, as long as nothing changes. */
export function heardScene(chain: Chain, around: Surroundings): HeardScene {
  const { generation, route } = around;
  let ofGeneration = scenes.get(generation);
  if (ofGeneration === undefined) {
    ofGeneration = new WeakMap();
    scenes.set(generation, ofGeneration);
  }
  let scene = ofGeneration.get(route ?? generation);
  if (scene === undefined) {
    scene = new HeardScene(chain, around);
    ofGeneration.set(route ?? generation, scene);
  }
  return scene;
}

/** Keeps nothing of a request, and can do nothing for one: it has ended. */
export class HeardScene extends ServedScene<Surroundings> implements VisitScene {
  readonly chain: Chain;
  readonly route = this.ownRoute;
  readonly service = this.ownService;

  constructor(chain: Chain, around: Surroundings) {
    super(around);
    this.chain = chain;
  }

  bodyLengthOf(context: RequestContext): number {
    return declaredLength(context);
  }

  bodyOf(context: RequestContext): HeldBody {
    return new HeldBody({ context, readTimeout: 0, refuse() {} });
  }

  refetch(): Promise<Refetched> {
    return Promise.reject(new Error("the request has ended"));
  }

  copyFor(): VisitScene {
    return this;
  }
}
