"""One page for every decision: views as data, and the page that draws them."""
