// A field for a whole number that may be left empty; knows no resource.
import { NumberInput } from "@mantine/core";
import type { FieldProps } from "./fields.tsx";

interface Props extends Omit<FieldProps<number | null>, "value"> {
  readonly value?: number | null;
  readonly min?: number;
  readonly max?: number;
  readonly suffix?: string;
  /** False for ports and other numbers that are names. Default: true. */
  readonly isGrouped?: boolean;
  /** What an empty field means. Default: null, which is "not set". */
  readonly empty?: number | null;
}

/** Takes `form.getInputProps(path)`. An empty field is null, or what `empty` says. */
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
