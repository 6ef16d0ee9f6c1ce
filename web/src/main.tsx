import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./styles/page.css";
import { App } from "./app.tsx";

const page = document.getElementById("page");
if (page !== null) {
  page.textContent = "";
  render(<App />, page);
}
