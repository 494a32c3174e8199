// The domains of a certificate; the name of a new one follows the first domain.
import { ListField } from "../../parts/fields.tsx";
import type { CertificateFieldsProps } from "./certificate-form.tsx";
import { followedName } from "./certificate-values.ts";

export interface DomainsFieldProps extends CertificateFieldsProps {
  readonly isNew: boolean;
}

export function DomainsField({
  form,
  isNew,
  example,
}: DomainsFieldProps & { readonly example: string }) {
  const { domains } = form.values;
  return (
    <ListField
      label="Domains"
      description="Press Enter after each"
      required
      placeholder={domains.length === 0 ? example : ""}
      {...form.getInputProps("domains")}
      onChange={(next) => {
        if (isNew) form.setFieldValue("name", followedName(form.values, next));
        form.setFieldValue("domains", next);
      }}
    />
  );
}
