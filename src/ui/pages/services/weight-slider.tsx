// A slider for a target's share of the traffic; sends nothing by itself.
import { Box, Group, Slider, Text } from "@mantine/core";
import { useState } from "react";
import { Can } from "../../parts/page-layout.tsx";
import type { Target } from "./live-targets.tsx";
import { addressOf } from "./target-weight.ts";

interface Props {
  readonly target: Target;
  /** Percent; null: none. */
  readonly share: number | null;
  /** When the handle is released. */
  readonly onChange: (weight: number) => void;
}

/** Larger weights are typed in the drawer. */
const USUAL_MAX = 200;

export function WeightSlider({ target, share, onChange }: Props) {
  const [moved, setMoved] = useState<number | null>(null);
  const [reported, setReported] = useState(target.weight);
  // The weight changed, here or elsewhere.
  if (reported !== target.weight) {
    setReported(target.weight);
    setMoved(null);
  }
  const weight = moved ?? target.weight;
  const text = weight === 0 ? "drained" : share === null || moved !== null ? "" : `${share} %`;
  return (
    <Group gap="sm" mt={6} wrap="nowrap">
      <Text size="sm" c="dimmed" style={{ whiteSpace: "nowrap" }}>
        Weight {weight}
      </Text>
      <Can needs="editor">
        <Box style={{ flex: 1, maxWidth: "22rem" }}>
          <Slider
            size="sm"
            max={Math.max(USUAL_MAX, target.weight)}
            step={5}
            label={null}
            thumbLabel={`Weight of ${addressOf(target)}`}
            value={weight}
            onChange={setMoved}
            onChangeEnd={(next) => {
              if (next !== target.weight) onChange(next);
            }}
          />
        </Box>
      </Can>
      <Text size="sm" c="dimmed" miw="4.5rem" style={{ whiteSpace: "nowrap" }}>
        {text}
      </Text>
    </Group>
  );
}
