// A plot of time series in theme colors; knows no metric.
import "uplot/dist/uPlot.min.css";
import { Box, useComputedColorScheme, useMantineTheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useRef } from "react";
import uPlot from "uplot";

export interface Series {
  readonly label: string;
  /** A color of the theme, such as `teal`. */
  readonly color: string;
  /** One value per time; null without data. */
  readonly values: readonly (number | null)[];
  readonly isFilled?: boolean;
}

interface PlotProps {
  /** Seconds since the epoch, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** Formats a value: `12 ms`. */
  readonly format?: (value: number) => string;
  readonly height?: number;
  /** The accessible description of the plot. */
  readonly label: string;
}

export function Plot({ times, series, format = String, height = 200, label }: PlotProps) {
  const { ref, width } = useElementSize();
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const scheme = useComputedColorScheme();
  const theme = useMantineTheme();
  const shape = series.map((one) => `${one.label} ${one.color} ${one.isFilled}`).join();
  const latest = useRef({ series, format });
  latest.current = { series, format };
  const data: uPlot.AlignedData = [[...times], ...series.map(({ values }) => [...values])];
  const first = useRef(data);
  first.current = data;
  // biome-ignore lint/correctness/useExhaustiveDependencies: recreated only when its shape changes; new data is set below
  useEffect(() => {
    if (host.current === null || width === 0) return;
    const drawn = new uPlot(
      optionsOf(latest.current, { width, height, isDark: scheme === "dark", colors: theme.colors }),
      first.current,
      host.current,
    );
    plot.current = drawn;
    return () => {
      plot.current = null;
      drawn.destroy();
    };
  }, [width, height, scheme, shape, theme]);
  useEffect(() => {
    plot.current?.setData(data);
  });
  return (
    <Box ref={ref} mih={height}>
      <div ref={host} role="img" aria-label={label} />
    </Box>
  );
}

interface Look {
  readonly width: number;
  readonly height: number;
  readonly isDark: boolean;
  readonly colors: Readonly<Record<string, readonly string[]>>;
}

function optionsOf(
  { series, format }: Required<Pick<PlotProps, "series" | "format">>,
  { width, height, isDark, colors }: Look,
): uPlot.Options {
  const axis = {
    stroke: isDark ? "#a9adb3" : "#5c636a",
    grid: { stroke: isDark ? "#ffffff14" : "#0000000f", width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  return {
    width,
    // The legend needs one line below the plot.
    height: height - 34,
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      {
        ...axis,
        size: 30,
        space: 64,
        values: (_, times) => times.map((time) => timeOf(time, times)),
      },
      { ...axis, size: 56, values: (_, values) => values.map((value) => format(value)) },
    ],
    series: [
      {
        value: (_: uPlot, time: number | null) =>
          time === null ? "–" : moment.format(time * 1000),
      },
      ...series.map(({ label, color, isFilled = false }) => {
        const stroke = colors[color]?.[isDark ? 4 : 7] ?? color;
        return {
          label,
          stroke,
          width: 1.6,
          ...(isFilled ? { fill: `${stroke}22` } : {}),
          points: { show: false },
          value: (_: uPlot, value: number | null) => (value === null ? "–" : format(value)),
        };
      }),
    ],
  };
}

const moment = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** The time of day, and the date at midnight; only dates for long ranges. */
function timeOf(time: number, all: readonly number[]): string {
  const at = new Date(time * 1000);
  const isMidnight = at.getHours() === 0 && at.getMinutes() === 0;
  const step = (all[1] ?? time) - (all[0] ?? time);
  return isMidnight || step >= 86_400 ? day.format(at) : clock.format(at);
}
