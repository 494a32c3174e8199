// The last minute of each node of the fleet; reads no statistics itself.
import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Section } from "../../parts/page-layout.tsx";
import { TrafficTable } from "./traffic-table.tsx";

type Nodes = Schemas["NodesStats"]["nodes"];

/** Nothing for one node: the page shows it. */
export function NodeTraffic({ nodes }: { readonly nodes: Nodes }) {
  if (nodes.length < 2) return null;
  return (
    <Section
      title="Nodes"
      text="The last minute."
      actions={
        <Anchor component={Link} href={pagePath("nodes")} size="sm">
          Show the nodes
        </Anchor>
      }
    >
      <TrafficTable
        title="Nodes"
        rows={nodes.map((row) => ({ ...row, key: row.node, label: row.node }))}
      />
    </Section>
  );
}
