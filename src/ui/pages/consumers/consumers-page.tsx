// Consumers: which list or form to open.
import { resourcePage } from "../../parts/form-page.tsx";
import { ConsumerForm } from "./consumer-form.tsx";
import { ConsumerList } from "./consumer-list.tsx";

export default resourcePage("consumers", ConsumerList, ConsumerForm);
