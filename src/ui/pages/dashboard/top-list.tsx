// The routes, services and targets with the most requests in the selected range; reads no statistics itself.
import { Anchor, SegmentedControl, Table, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Section } from "../../parts/page-layout.tsx";
import { inDigits, inMilliseconds, inPercent } from "../../parts/quantities.ts";

type History = Schemas["Stats"]["history"];
type Row = History["by_route"][number];

const kinds = [
  { value: "by_route", label: "Routes" },
  { value: "by_service", label: "Services" },
  { value: "by_target", label: "Targets" },
] as const;
type Kind = (typeof kinds)[number]["value"];

const SHOWN = 8;

export function TopList({ history }: { readonly history: History }) {
  const [kind, setKind] = useState<Kind>("by_route");
  const rows = history[kind].slice(0, SHOWN);
  return (
    <Section
      title="Top traffic"
      actions={
        <SegmentedControl
          size="xs"
          aria-label="Top traffic by"
          data={kinds.map((one) => ({ ...one }))}
          value={kind}
          onChange={(value) => setKind(value as Kind)}
        />
      }
    >
      {rows.length === 0 ? (
        <Text size="sm" c="dimmed">
          No traffic in this range.
        </Text>
      ) : (
        <Table horizontalSpacing={6} verticalSpacing={6} layout="fixed">
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
            {rows.map((row) => (
              <TopRow key={row.id} row={row} kind={kind} />
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Section>
  );
}

function TopRow({ row, kind }: { readonly row: Row; readonly kind: Kind }) {
  const { requests, error_share: share, latency_ms: latency } = row;
  return (
    <Table.Tr>
      <Table.Td style={{ overflowWrap: "anywhere" }}>
        <Name row={row} kind={kind} />
      </Table.Td>
      <Table.Td ta="end">{inDigits(requests)}</Table.Td>
      <Table.Td ta="end" {...(share >= 0.01 ? { c: "var(--mantine-color-error)", fw: 600 } : {})}>
        {inPercent(share)}
      </Table.Td>
      <Table.Td ta="end">{latency.p95 === null ? "–" : inMilliseconds(latency.p95)}</Table.Td>
    </Table.Tr>
  );
}

const special: Readonly<Record<string, string>> = {
  _none: "no route matched",
  _other: "others",
};

function Name({ row: { id, name }, kind }: { readonly row: Row; readonly kind: Kind }) {
  if (special[id] !== undefined)
    return (
      <Text size="sm" c="dimmed">
        {special[id]}
      </Text>
    );
  if (kind === "by_target")
    return (
      <Text size="sm" className="mono">
        {name}
      </Text>
    );
  const page = kind === "by_route" ? "routes" : "services";
  return (
    <Anchor component={Link} href={pagePath(page, id)} size="sm">
      {name === "" ? id : name}
    </Anchor>
  );
}
