// Traffic of an hour, a day or a month as plots, with tables for accessibility; reads no statistics.
import { Button, ScrollArea, Table } from "@mantine/core";
import { useMemo, useState } from "react";
import type { Schemas } from "../../api/resources.ts";
import { Section } from "../../parts/page-layout.tsx";
import { Plot, type Series } from "../../parts/plot.tsx";
import { inMilliseconds, inPercent, inRate } from "../../parts/quantities.ts";
import { toSeries } from "./traffic-series.ts";

interface Props {
  readonly stats: Schemas["Stats"];
}

export function TrafficPlots({ stats }: Props) {
  const series = useMemo(() => toSeries(stats), [stats]);
  const { times, requestsPerSecond, errorPercent, clientErrorPercent, p50, p95, p99 } = series;
  return (
    <>
      <PlotSection
        title="Requests per second"
        times={times}
        series={[{ label: "Requests", color: "brand", values: requestsPerSecond, isFilled: true }]}
        format={inRate}
      />
      <PlotSection
        title="Latency"
        text="Percentiles of the request duration: p50, p95 and p99."
        times={times}
        series={[
          { label: "p50", color: "teal", values: p50 },
          { label: "p95", color: "orange", values: p95 },
          { label: "p99", color: "red", values: p99 },
        ]}
        format={inMilliseconds}
      />
      <PlotSection
        title="Error rate"
        times={times}
        series={[
          { label: "5xx: server errors", color: "red", values: errorPercent, isFilled: true },
          { label: "4xx: client errors", color: "yellow", values: clientErrorPercent },
        ]}
        format={(percent) => inPercent(percent / 100)}
      />
    </>
  );
}

interface PlotSectionProps {
  readonly title: string;
  readonly text?: string;
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
}

function PlotSection({ title, text, times, series, format }: PlotSectionProps) {
  const [isTable, setTable] = useState(false);
  return (
    <Section
      title={title}
      text={text}
      actions={
        <Button
          size="compact-xs"
          variant="subtle"
          onClick={() => setTable(!isTable)}
          aria-label={`${title}: ${isTable ? "show the plot" : "show a table"}`}
        >
          {isTable ? "Plot" : "Table"}
        </Button>
      }
    >
      {isTable ? (
        <SeriesTable title={title} times={times} series={series} format={format} />
      ) : (
        <Plot
          label={`${title} over time. ${latestOf(series, format)}`}
          times={times}
          series={series}
          format={format}
        />
      )}
    </Section>
  );
}

/** The latest known values, in words. */
function latestOf(series: readonly Series[], format: (value: number) => string): string {
  return series
    .map(({ label, values }) => {
      const last = values.findLast((value) => value !== null);
      return `${label}: ${last === undefined || last === null ? "nothing" : format(last)}`;
    })
    .join(", ");
}

const moment = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

/** Newest first, without steps that had no traffic. */
function SeriesTable({ title, times, series, format }: Omit<PlotSectionProps, "text">) {
  const rows = times
    .map((time, index) => ({ time, values: series.map(({ values }) => values[index] ?? null) }))
    .filter(({ values }) => values.some((value) => value !== null && value !== 0))
    .toReversed();
  return (
    <ScrollArea
      h={200}
      type="auto"
      viewportProps={{ tabIndex: 0, role: "region", "aria-label": `${title} as a table` }}
    >
      <Table stickyHeader>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>From</Table.Th>
            {series.map(({ label }) => (
              <Table.Th key={label}>{label}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ time, values }) => (
            <Table.Tr key={time}>
              <Table.Td>{moment.format(time * 1000)}</Table.Td>
              {values.map((value, index) => (
                <Table.Td key={series[index]?.label}>
                  {value === null ? "–" : format(value)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
          {rows.length === 0 && (
            <Table.Tr>
              <Table.Td colSpan={series.length + 1}>No traffic in this range</Table.Td>
            </Table.Tr>
          )}
        </Table.Tbody>
      </Table>
    </ScrollArea>
  );
}
