// The last minute of each node of the fleet; reads no statistics itself.
import { Anchor, Table } from "@mantine/core";
import { Link } from "wouter";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Section } from "../../parts/page-layout.tsx";
import { inDigits, inMilliseconds, inPercent } from "../../parts/quantities.ts";

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
      <Table aria-label="Nodes" horizontalSpacing={6} verticalSpacing={6} layout="fixed">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Name</Table.Th>
            <Table.Th w={90} ta="end">
              Requests
            </Table.Th>
            <Table.Th w={70} ta="end">
              Failed
            </Table.Th>
            <Table.Th w={80} ta="end">
              p95
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {nodes.map(({ node, requests, error_share: share, latency_ms: { p95 } }) => (
            <Table.Tr key={node}>
              <Table.Td style={{ overflowWrap: "anywhere" }}>{node}</Table.Td>
              <Table.Td ta="end">{inDigits(requests)}</Table.Td>
              <Table.Td
                ta="end"
                {...(share >= 0.01 ? { c: "var(--mantine-color-error)", fw: 600 } : {})}
              >
                {inPercent(share)}
              </Table.Td>
              <Table.Td ta="end">{p95 === null ? "–" : inMilliseconds(p95)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Section>
  );
}
