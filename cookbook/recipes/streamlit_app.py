"""Shows an answer while it is written and checked, with Streamlit.

`pip install langchain-groundedness streamlit`, then `streamlit run streamlit_app.py`.
"""

import streamlit as st

from langchain_groundedness import GroundednessRunnable
from langchain_groundedness.demo import QUESTION, build_chain


@st.cache_resource
def checked_chain():
    checker = GroundednessRunnable(on_contradicted="correct")
    checker.warm_up()
    return build_chain().pipe(checker)  # or your own chain


st.title("Ask the documents")
question = st.text_input("Question", QUESTION)
if st.button("Ask"):
    place, result = st.empty(), None
    for chunk in checked_chain().stream(question):
        result = chunk if result is None else result + chunk
        place.html(result._repr_html_())  # texts from outside are escaped in it
    st.write("Shown to readers:", result.answer)
