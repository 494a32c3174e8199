// Requests, failures, latency and cache hits, a row for each name; knows no subject.
import { Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { Schemas } from "../../api/resources.ts";
import { inBytes, inDigits, inMilliseconds, inPercent } from "../../parts/quantities.ts";

type Figures = Pick<
  Schemas["Stats"]["history"]["by_route"][number],
  "requests" | "error_share" | "latency_ms" | "cache_hit_ratio" | "cache_bytes"
>;

export interface TrafficRow extends Figures {
  readonly key: string;
  readonly label: ReactNode;
}

interface TrafficTableProps {
  /** Accessible name. */
  readonly title: string;
  readonly rows: readonly TrafficRow[];
}

export function TrafficTable({ title, rows }: TrafficTableProps) {
  return (
    <Table aria-label={title} horizontalSpacing={6} verticalSpacing={6} layout="fixed">
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
        {rows.map(({ key, label, requests, error_share: share, latency_ms: { p95 }, ...cache }) => (
          <Table.Tr key={key}>
            <Table.Td style={{ overflowWrap: "anywhere" }}>
              {label}
              <CacheHits {...cache} />
            </Table.Td>
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
  );
}

/** Below the name: most rows have none. Older nodes do not count it. */
function CacheHits({
  cache_hit_ratio: ratio = null,
  cache_bytes: bytes,
}: Pick<Figures, "cache_hit_ratio" | "cache_bytes">) {
  if (ratio === null) return null;
  return (
    <Text size="xs" c="dimmed">
      {inPercent(ratio)} cache hits, {inBytes(bytes)}
    </Text>
  );
}
