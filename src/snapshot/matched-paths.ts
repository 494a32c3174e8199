// The paths that a route matches, with those of its gRPC methods; knows no router.
import type { GrpcMatch, Route } from "../model/route.ts";
import type { PathMatch } from "../model/route-match.ts";

/**
 * All paths of a route: its own, and those of its gRPC methods, which clients call as `/Service/Method`. Empty: any path.
 */
export function matchedPaths({
  paths,
  grpc_methods: methods,
}: Pick<Route, "paths" | "grpc_methods">): readonly PathMatch[] {
  return methods.length === 0 ? paths : [...paths, ...methods.map(grpcPathOf)];
}

/** The path of a gRPC call: of one method, of all methods of a service, or of a method of any service. */
function grpcPathOf({ service, method }: GrpcMatch): PathMatch {
  if (service === "") return { type: "regex", value: `^/[^/]+/${method}$` };
  if (method === "") return { type: "prefix", value: `/${service}/` };
  return { type: "exact", value: `/${service}/${method}` };
}
