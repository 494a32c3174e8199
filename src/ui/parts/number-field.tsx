// An input for an optional integer; knows no resource.
import { NumberInput } from "@mantine/core";
import type { FieldProps } from "./fields.tsx";

interface Props extends Omit<FieldProps<number | null>, "value"> {
  readonly value?: number | null;
  readonly min?: number;
  readonly max?: number;
  readonly suffix?: string;
  /** Whether to group digits; false for ports. Default: true. */
  readonly isGrouped?: boolean;
  /** The value of an empty input. Default: null. */
  readonly empty?: number | null;
}

/** For `form.getInputProps(path)`. An empty input is null, or `empty`. */
export function NumberField(props: Props) {
  const { value, onChange, empty = null, isGrouped = true, ...rest } = props;
  return (
    <NumberInput
      allowDecimal={false}
      thousandSeparator={isGrouped ? " " : ""}
      min={0}
      value={value ?? ""}
      onChange={(next) => onChange?.(next === "" ? empty : Number(next))}
      {...rest}
    />
  );
}
