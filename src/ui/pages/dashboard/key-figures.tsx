// The key figures of the last minute; reads no statistics itself.
import { Paper, SimpleGrid, Stack, Text } from "@mantine/core";
import type { Schemas } from "../../api/resources.ts";
import { inBytes, inDigits, inMilliseconds, inPercent, inRate } from "../../parts/quantities.ts";

export function KeyFigures({ now }: { readonly now: Schemas["Stats"]["now"] }) {
  const { p50, p95, p99 } = now.latency_ms;
  const share = now.requests === 0 ? "–" : inPercent(now.error_share);
  const open = [
    counted(now.open_websockets, "WebSocket"),
    counted(now.open_connections, "connection"),
    counted(now.open_http2_streams, "HTTP/2 stream"),
  ].filter((text) => text !== null);
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md" mb="md">
      <Figure
        title="Requests per second"
        value={inRate(now.requests_per_second)}
        detail={`${inBytes(now.bytes_out_per_second)}/s out, ${inBytes(now.bytes_in_per_second)}/s in`}
      />
      <Figure
        title="Failed (5xx)"
        value={share}
        isBad={now.error_share >= 0.01}
        detail={`${inDigits(now.errors)} of ${inDigits(now.requests)} in the last minute`}
      />
      <Figure
        title="Latency p95"
        value={p95 === null ? "–" : inMilliseconds(p95)}
        detail={
          p50 === null || p99 === null
            ? "no requests"
            : `p50 ${inMilliseconds(p50)}, p99 ${inMilliseconds(p99)}`
        }
      />
      <Figure
        title="In flight"
        value={inDigits(now.in_flight)}
        detail={open.join(", ") || "no WebSockets"}
      />
    </SimpleGrid>
  );
}

const counted = (count: number, name: string): string | null =>
  count === 0 ? null : `${inDigits(count)} ${name}${count === 1 ? "" : "s"}`;

interface FigureProps {
  readonly title: string;
  readonly value: string;
  readonly detail: string;
  readonly isBad?: boolean;
}

function Figure({ title, value, detail, isBad = false }: FigureProps) {
  return (
    <Paper withBorder p={{ base: "sm", sm: "md" }} role="group" aria-label={title}>
      <Stack gap={2}>
        <Text size="sm" c="dimmed">
          {title}
        </Text>
        <Text fz={26} fw={650} lh={1.2} {...(isBad ? { c: "var(--mantine-color-error)" } : {})}>
          {value}
        </Text>
        <Text size="xs" c="dimmed">
          {detail}
        </Text>
      </Stack>
    </Paper>
  );
}
