// Response schemas of views of several nodes; used for the API description only.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { present } from "./stats-schemas.ts";

const node = t.String({ description: "Name of the node" });

/** Members of every view of several nodes. */
const completeness = {
  partial: t.Boolean({ description: "Whether a node is missing" }),
  missing: t.Array(
    t.Object({ name: node, why: t.String({ description: "Why it could not be read" }) }),
    { description: "Nodes whose data the response lacks" },
  ),
};

const ref = (name: string) => t.Unsafe({ $ref: `#/components/schemas/${name}` });
const of = (schema: TSchema) => t.Intersect([t.Object({ node }), schema]);

export const nodeSchemas: Readonly<Record<string, TSchema>> = {
  NodesRequests: t.Object(
    {
      ...completeness,
      items: t.Array(of(ref("Request")), { description: "Newest first" }),
    },
    { title: "NodesRequests" },
  ),
  NodesHealth: t.Object(
    {
      ...completeness,
      items: t.Array(of(ref("ServiceHealth")), { description: "As each node sees it, by node" }),
    },
    { title: "NodesHealth" },
  ),
  NodesStats: t.Intersect(
    [
      t.Object({
        ...completeness,
        stored: t.Array(
          t.Object({
            node,
            until: t.String({ format: "date-time", description: "What it had counted until then" }),
          }),
          {
            description:
              "Nodes that are away or gone: the history has their statistics from the database of the fleet, `now` and `nodes` have nothing of them",
          },
        ),
        nodes: t.Array(of(present), { description: "The last minute of each node" }),
      }),
      ref("Stats"),
    ],
    { title: "NodesStats", description: "The sum of the nodes" },
  ),
};
